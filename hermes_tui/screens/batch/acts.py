"""What a person does to runs: start, resume, pause, workers, retry, stop, export, a sample file. Off the loop; raises
HermesError. Knows no widget.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_engine.errors import NotConfigured
from hermes_tui.presenter.batch import RowName
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.messages import Message
    from hermes_engine.session import Engine
    from hermes_tui.desk import Desk
    from hermes_tui.presenter.batch import TableRow

T = TypeVar("T")

SAMPLE = (
    '{"prompt": "Write a Python function that finds the longest palindrome in a text, and test it."}\n'
    '{"prompt": "Count the words in this sentence and say which letter is the most frequent.", "toolsets": []}\n'
    '{"prompt": "Make a file notes.md with three facts about the moon, then read it back.", "toolsets": ["file"]}\n'
)


class Acting:
    """Acts on runs for a screen."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def _engine(self) -> Engine:
        if self._desk.engine is None:
            raise NotConfigured(_("no model is set up yet"))
        return self._desk.engine

    async def _off(self, work: Callable[[], T]) -> T:
        return await self._desk.off_loop(work)

    async def start(self, values: Mapping[str, Any]) -> Path:
        """Starts a run once everything that can be checked is; its folder. Raises UsageError, ConfigError."""
        engine, resolved = self._engine, self._desk.resolved

        def begin() -> Path:
            from hermes_engine.batch.options import checked
            from hermes_engine.batch.setup import set_up

            options = checked(values)
            if resolved is not None:
                set_up(options, resolved)
            engine.start_batch(options)
            return options.folder

        return await self._off(begin)

    async def resume(self, folder: Path) -> str:
        """Goes on with a run that nobody works; what is to be said."""
        from hermes_tui.commands.batch import refuse_capped

        await self._off(lambda: refuse_capped(folder))
        await self.start({"run_name": folder.name, "output_dir": folder.parent, "resume": True})
        return _("{name} goes on").format(name=folder.name)

    async def pause(self, name: str, *, on: bool) -> str:
        """Pauses a run at work here, or lets it go on."""
        runs = self._engine.runs
        await self._off(lambda: runs.pause(name, on))
        return _("Paused; rows in flight are finished. p goes on") if on else _("{name} goes on").format(name=name)

    async def workers(self, name: str, step: int) -> str:
        """More or fewer rows in flight."""
        runs = self._engine.runs
        floor = runs.floor(name)
        count = await self._off(lambda: runs.set_workers(name, (floor.workers if floor is not None else 0) + step))
        return ngettext("{count} row at once", "{count} rows at once", count).format(count=count)

    async def retry(self, folder: Path, rows: Collection[RowName] | None = None) -> str:
        """Runs failed rows again."""
        runs = self._engine.runs
        count = await self._off(lambda: runs.retry(folder, rows))
        if count < 0:
            return _("The failed rows run again") if rows is None else _("Row {row} runs again").format(row=_told(rows))
        if not count:
            return _("Nothing has failed that does not wait or run again already")
        return ngettext("{count} row runs again", "{count} rows run again", count).format(count=count)

    async def stop(self, folder: Path) -> str:
        """Ends a run in order, wherever it is worked."""
        engine = self._engine
        here = engine.stop_batch(folder.name)

        def ask() -> None:
            from hermes_engine.batch.folder import RunFolder

            RunFolder(folder).ask_to_stop()

        if not here:
            await self._off(ask)
        return _("Stopping {name}; rows in flight get a moment to end").format(name=folder.name)

    async def export(self, folder: Path, form: str) -> str:
        """Writes the completed rows in a form for trainers, into a new file of the chat's folder."""
        target = self._free(f"{folder.name}.{form}", ".jsonl")

        def write() -> str:
            from hermes_engine.batch.export import export, form_of
            from hermes_engine.batch.folder import RunFolder

            run = RunFolder(folder)
            told = export(run, form_of(form, run.settings().get("tools", [])), target)
            left = sum(told.left_out.values())
            words = _("{count} rows in {file}, {left} left out") if left else _("{count} rows in {file}")
            return words.format(count=told.written, file=target.name, left=left)

        return await asyncio.get_running_loop().run_in_executor(self._desk.commands, write)

    def _free(self, stem: str, ending: str) -> Path:
        """A name in the chat's folder that no file has."""
        names = (f"{stem}{number}{ending}" for number in itertools.chain([""], (f"-{n}" for n in itertools.count(2))))
        return next(path for name in names if not (path := self._desk.cwd / name).exists())

    async def sample(self) -> Path:
        """A file of prompts to begin with; never in the place of another."""
        target = self._free("prompts", ".jsonl")

        def write() -> Path:
            with target.open("x", encoding="utf-8") as stream:
                stream.write(SAMPLE)
            return target

        return await self._off(write)

    async def answer(self, row: TableRow) -> str:
        """A row's last words, "" for none."""
        messages = await self.recorded(row)
        return next((one.content for one in reversed(messages) if one.role == "assistant" and one.content), "")

    async def recorded(self, row: TableRow) -> tuple[Message, ...]:
        """What a settled row's line holds; () for one in flight."""
        line = row.line
        if line is None:
            return ()

        def read() -> tuple[Message, ...]:
            from hermes_engine.batch.watching import recorded

            return recorded(line)

        return await self._off(read)


def _told(rows: Collection[RowName]) -> str:
    return ", ".join(f"{index}.{sample}" if sample else str(index) for index, sample in rows)
