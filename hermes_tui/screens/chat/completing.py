"""Proposals while a person types: slash commands and their arguments, files after `@`. Looked up off the loop, the
latest text wins.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_tui.files import FileFinder, mention
from hermes_tui.widgets.menu import Proposal

if TYPE_CHECKING:
    from hermes_tui.commands import CommandHost
    from hermes_tui.desk import Desk
    from hermes_tui.widgets.prompt import Prompt


class Completing:
    """The proposals of one prompt."""

    def __init__(self, prompt: Prompt, desk: Desk, host: CommandHost) -> None:
        self._prompt, self._desk, self._host = prompt, desk, host
        self._files = FileFinder()
        self._wanted = self._shown = ""
        self._task: asyncio.Task[None] | None = None
        self._declined: str | None = None

    def edited(self) -> None:
        """The draft changed."""
        before = "" if self._prompt.lent else self._prompt.area.before_cursor
        if not self._completes(before) or before == self._declined:
            self._wanted = ""
            self._prompt.menu.close()
            return
        self._wanted = before
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="completion")

    def decline(self) -> None:
        """The person closed the menu: it stays closed for this text."""
        self._declined = self._prompt.area.before_cursor

    async def settled(self) -> None:
        """Returns when nothing is being looked up."""
        if self._task is not None:
            await self._task

    def enter(self) -> bool:
        """Enter: puts the chosen proposal in, unless the draft is a command as it stands or went on since the proposals
        were looked up; whether more is to be written.
        """
        prompt, menu = self._prompt, self._prompt.menu
        chosen = menu.chosen if menu.is_open else None
        if chosen is None or prompt.area.before_cursor != self._shown or self._exact(prompt.draft):
            return False
        prompt.accept(chosen)
        if chosen.text.startswith("/") and chosen.start == 0 and self.runs_as_is(chosen.text):
            return False
        prompt.insert(" ")
        return True

    @staticmethod
    def _exact(text: str) -> bool:
        """Whether the text names a command, so that Enter runs it rather than the chosen proposal."""
        from hermes_tui.commands import find

        return text.startswith("/") and (" " in text or find(text[1:]) is not None)

    @staticmethod
    def runs_as_is(text: str) -> bool:
        """Whether a chosen command needs no words after it."""
        from hermes_tui.commands import find

        command = find(text[1:])
        return command is not None and (not command.args or command.args.startswith("["))

    @staticmethod
    def _completes(before: str) -> bool:
        if before.startswith("/"):
            return "\n" not in before
        return mention(before) is not None

    async def _look(self) -> None:
        while True:
            wanted = self._wanted
            if not wanted:
                return
            if wanted.startswith("/"):
                found = await self._desk.off_loop(lambda text=wanted: self._commands(text))  # type: ignore[misc]
            else:
                found = await self._desk.off_loop(lambda text=wanted: self._mentions(text))  # type: ignore[misc]
            if wanted == self._wanted:
                same = len(found) == 1 and found[0].text == wanted[found[0].start :]
                self._shown = wanted
                self._prompt.menu.show(() if same else found)
                return

    def _commands(self, text: str) -> list[Proposal]:
        from hermes_tui.commands import complete

        if self._desk.engine is None:
            return []
        return [Proposal(item.text, item.help, item.start) for item in complete(text, self._host)]

    def _mentions(self, text: str) -> list[Proposal]:
        at = mention(text)
        if at is None:
            return []
        found = self._files.find(self._desk.cwd, text[at + 1 :])
        return [Proposal(f"@{path}", "", at) for path in found]
