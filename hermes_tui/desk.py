"""The engine and the app's knowledge of it: what is open, what goes on, what waits. No widget, no screen.

Everything here that reads the disk or waits runs in the desk's own small pool, never on the app's loop and never in
the loop's default pool, which would keep the app from leaving.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_engine.errors import HermesError
from hermes_tui.widgets.facts import AskFact, BoardFact, ContextFact, PlaceFacts, WorkFacts

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import AgentRow, Engine, SessionView
    from hermes_tui.bridge import Bridge
    from hermes_tui.outcomes import Outcome
    from hermes_tui.presenter.past import Past
    from hermes_tui.presenter.work import Work

T = TypeVar("T")


MIN_PAUSE, TYPING_PAUSE = 1 / 30, 1 / 12
"""Least seconds between two drains of the bridge, and while the person types: their letters come first."""

SAMPLE = "examples/prompts.jsonl"
"""Prompts to try, where a folder has them."""

KEPT = 50
"""Ended agents kept in the engine's list after they were seen, for whoever looks back."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the app was started.

    Attributes:
        load: reads the settings; may raise a HermesError. Called again after a set-up.
        cwd: folder to work in.
        resume: id of a saved chat, or None.
        continue_last: go on with this folder's last chat.
        mode: approval mode, or None for the settings'.
        ephemeral: keep nothing on disk.
    """

    load: Callable[[], Resolved]
    cwd: Path
    resume: str | None = None
    continue_last: bool = False
    mode: str | None = None
    ephemeral: bool = False


class Desk:
    """One engine and the chat on the screen. Methods marked as blocking run through `off_loop`."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="hermes-app")
        self.commands = ThreadPoolExecutor(1, thread_name_prefix="hermes-commands")
        self.resolved: Resolved | None = None
        self.engine: Engine | None = None
        self.session = ""
        self.agent = ""
        self.title = self.model = self.profile = self.branch = ""
        self.mode = start.mode or "ask"
        self.cwd = start.cwd
        self.began = 0.0
        self._windows: dict[str, int] = {}
        """Sizes of contexts by model, as they were told."""
        self.board: Callable[[], BoardFact | None] = lambda: None
        """The board in short, once one was opened or is worked here."""
        self.leave_behind = False
        """Whether what is at work goes on in a process of its own when this one ends."""

    @cached_property
    def bridge(self) -> Bridge:
        """Where the engine's events come in; events cost 25 ms to load, so it is made after the first paint."""
        from hermes_tui.bridge import Bridge

        return Bridge()

    @cached_property
    def work(self) -> Work:
        """What goes on, kept from events."""
        from hermes_tui.presenter.work import Work

        return Work()

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Runs blocking work in the desk's pool."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    # Blocking

    def load(self) -> Resolved:
        """Reads the settings. Blocks; raises HermesError."""
        self.resolved = self.start.load()
        return self.resolved

    def open_engine(self, resolved: Resolved) -> SessionView:
        """Brings the engine up with the chat the app was started for. Blocks; raises HermesError."""
        self.engine = self._started(resolved)
        return self.engine.open_session(
            self.cwd, resume=self.start.resume, continue_last=self.start.continue_last, mode=self.start.mode
        )

    def _started(self, resolved: Resolved) -> Engine:
        from hermes_engine.session import Engine  # 0.15 s with all it needs: after the first paint

        engine = Engine(resolved, self.bridge.put, attended=True, ephemeral=self.start.ephemeral)
        engine.start()
        return engine

    def moved(self, resolved: Resolved) -> tuple[Engine, SessionView]:
        """Ends the engine and brings up one with other settings and the chat on the screen, to be taken over on the
        app's loop by `show`. Only while nothing runs. Blocks; raises HermesError.
        """
        resume = self.resumable or None
        if self.engine is not None:
            self.engine.close()
        engine = self._started(resolved)
        try:
            return engine, engine.open_session(self.cwd, resume=resume, mode=self.mode)
        except HermesError:
            engine.close()
            raise

    def past(self, session: str) -> Past:
        """What is recorded of a chat's earlier turns; nothing where nothing is kept. Blocks."""
        from hermes_tui.outcomes import kept
        from hermes_tui.presenter.past import KINDS, Past
        from hermes_tui.presenter.results import result_block

        if self.engine is None:
            return Past()
        over = not self.engine.busy(session)
        try:
            tasks = self.engine.tasks.earlier(session)  # also writes what was heard until now
            past = Past(self.engine.sessions().recordings().of_chat(session, KINDS), over=over)
            for record in tasks:
                past.add_result(record.ended or 0.0, result_block(kept(record)))
        except HermesError:
            return Past()
        return past

    def sample(self) -> str:
        """The file of prompts to try, "" where the folder has none. Blocks."""
        return SAMPLE if (self.cwd / SAMPLE).is_file() else ""

    def results(self, session: str) -> list[Outcome]:
        """What tasks of a chat have brought that nobody has seen yet, oldest first. Blocks."""
        from hermes_tui.outcomes import kept

        try:
            return [kept(record) for record in self.engine.tasks.results(session)] if self.engine else []
        except (HermesError, RuntimeError):  # the latter from an engine that is being closed
            return []

    def close(self, grace: float = 1.5) -> int:
        """Ends everything. Blocks up to about `grace` seconds, a few more where work is left behind.

        Returns the process that goes on with what is left behind, 0 for none.
        """
        if "bridge" in self.__dict__:
            self.bridge.disconnect()
        if self.engine is None or self.resolved is None:
            return 0
        left = self.engine.leave() if self.leave_behind and not self.start.ephemeral else []
        self.engine.close(grace)
        if not left:
            return 0
        from hermes_tui.leaving_behind import go_on_without_us

        return go_on_without_us(left, self.resolved)

    # On the app's loop

    def show(self, view: SessionView) -> None:
        """A chat is on the screen now."""
        self._learn_window()
        self.session, self.agent = view.id, view.agent
        self.title, self.model, self.profile, self.mode, self.cwd = (
            view.title, view.model, view.profile, view.mode, view.cwd,
        )  # fmt: skip
        window = view.context_window or self._windows.get(view.model, 0)
        context = ContextFact(view.context_tokens, window, view.estimated) if view.messages else None
        self.work.show(view.id, view.agent, usage=view.usage, context=context, messages=view.messages)

    @property
    def resumable(self) -> str:
        """Id of the chat on the screen, if something was said in it and it is kept."""
        if self.engine is None or not self.session or self.start.ephemeral:
            return ""
        return self.session if self.engine.view(self.session).messages else ""

    def remember_window(self, window: int) -> None:
        """The size of the model's context as it was told in an earlier turn, until this one tells it."""
        self._windows[self.model] = self._windows.get(self.model) or window
        self._fit_window()

    def _learn_window(self) -> None:
        if "work" in self.__dict__ and (window := self.work.context.window):
            self._windows[self.model] = window

    def _fit_window(self) -> None:
        """The context is measured against the model of now."""
        context = self.work.context
        self.work.context = ContextFact(context.tokens, self._windows.get(self.model, 0), context.estimated)

    def seen(self, agent: str) -> None:
        """The result of an agent was shown."""
        if self.engine is not None:
            self.engine.tasks.seen([agent])

    def refresh(self) -> None:
        """Takes over what commands may have changed."""
        if self.engine is not None and self.session:
            view, before = self.engine.view(self.session), self.model
            self._learn_window()
            self.title, self.model, self.mode, self.cwd = view.title, view.model, view.mode, view.cwd
            if self.model != before:
                self._fit_window()

    @property
    def busy(self) -> bool:
        """Whether a turn of the chat on the screen runs."""
        return self.engine is not None and bool(self.session) and self.engine.busy(self.session)

    @property
    def queued(self) -> tuple[str, ...]:
        """What waits to be sent."""
        return self.engine.queued(self.session) if self.engine is not None and self.session else ()

    def running(self) -> list[AgentRow]:
        """What leaving would stop."""
        engine = self.engine
        return [row for row in engine.agents() if engine.supervisor.at_work(row.id)] if engine is not None else []

    @property
    def alive(self) -> bool:
        """Whether anything runs, so that time has to be shown."""
        return bool(self.running())

    def work_facts(self, ask: AskFact | None) -> WorkFacts:
        """What goes on, for the bars and the sidebar."""
        if "work" not in self.__dict__:
            return WorkFacts(ask=ask)
        work, engine = self.work, self.engine
        rows = engine.agents() if engine is not None else ()
        cap = self.resolved.settings.limits.max_cost_usd if self.resolved is not None else None
        needs = len(engine.broker.pending()) if engine is not None else 0
        needs = max(needs, ask.more + 1 if ask is not None else 0)
        agents = work.forest.facts(rows)
        at_work = sum(row.live and row.kind not in ("chat", "batch") for row in rows)
        usage, board = work.usage(cap), self.board()
        return WorkFacts(agents, work.batches(time.time()), work.context, usage, ask, needs, work.plan, board, at_work)

    def tell(self, agents: Sequence[str]) -> None:
        """The results of these agents are in view in the chat; returns at once."""
        new = self.work.forest.tell(agents)
        if self.engine is not None and new:
            self.engine.tasks.seen(sorted(new))

    def see(self, agents: Sequence[str]) -> None:
        """The person has seen the results of these agents; returns at once."""
        self.work.forest.see(agents)
        if self.engine is None or not agents:
            return
        self.engine.tasks.seen(agents)
        past = self.work.forest.seen(self.engine.agents())[:-KEPT]
        for agent in past:
            self.work.tails.forget(agent)
        self.engine.tasks.forget(past)

    def place_facts(self, *, doing: str, escape: str, hint: str, unseen: int) -> PlaceFacts:
        """Where the person is."""
        busy = self.busy
        if busy and not self.began:
            self.began = time.monotonic()
        elif not busy:
            self.began = 0.0
        return PlaceFacts(
            title=self.title,
            folder=short_folder(self.cwd),
            branch=self.branch,
            model=self.model.rpartition("/")[2],
            mode=self.mode,
            profile=self.profile,
            busy=busy,
            state=doing,
            seconds=time.monotonic() - self.began if busy else 0.0,
            escape=escape,
            hint=hint,
            unseen=unseen,
        )


class Pace:
    """How often the bridge is drained: as often as it is worth, and never so often that keys have to wait."""

    def __init__(self) -> None:
        self._began = self._due = 0.0

    def wait(self) -> float:
        """Seconds until the next drain is due; 0 begins one."""
        now = time.monotonic()
        if now < self._due:
            return self._due - now
        self._began = now
        return 0.0

    def pause(self, cost: float, *, typed: float) -> float:
        """Seconds until the drain after this one: longer when drawing takes long (`cost` seconds beside this one's
        own), and while the person types (`typed`: when they did last, in monotonic seconds).
        """
        now = time.monotonic()
        least = TYPING_PAUSE if now - typed < TYPING_PAUSE * 4 else MIN_PAUSE
        seconds = max(least, 3 * (now - self._began + cost))
        self._due = now + seconds
        return seconds


def warm_up() -> None:
    """Loads what the first answer and the first slash need, so that neither waits for it. For a thread."""
    from hermes_tui.commands import commands
    from hermes_tui.widgets.markdown.drawing import parser

    commands()
    parser()


def short_folder(path: Path) -> str:
    """The folder with `~` for the person's home."""
    folder, home = str(path), os.environ.get("HOME", "").rstrip("/")
    if home and (folder == home or folder.startswith(home + "/")):
        return "~" + folder[len(home) :]
    return folder


def git_branch(folder: Path) -> str:
    """The branch checked out in a folder, "" where there is none. Blocks for the disk, runs no git."""
    for place in (folder, *folder.parents):
        head = place / ".git" / "HEAD"
        try:
            text = head.read_text("utf-8", errors="replace").strip()
        except OSError:
            continue
        return text.removeprefix("ref: refs/heads/") if text.startswith("ref:") else text[:8]
    return ""
