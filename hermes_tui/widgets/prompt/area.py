"""The editor of the prompt: whole clusters, tokens that are one thing, readline's keys. Sends nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.cells import split_graphemes
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from hermes_tui.texts import _
from hermes_tui.widgets.prompt.pastes import Pastes

Location = tuple[int, int]
_PICTURES = {code: 0x2400 + code for code in range(32) if code != 9} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


class Area(TextArea):
    """A text area that moves by what a person sees as one character."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+b", "cursor_word_left", _("Word left"), show=False, id="prompt.word_left"),
        Binding("alt+f", "cursor_word_right", _("Word right"), show=False, id="prompt.word_right"),
        Binding("ctrl+w,alt+backspace", "kill_word", _("Cut the word before"), show=False, id="prompt.kill_word"),
        Binding("ctrl+u", "kill_to_start", _("Cut to the start of the line"), show=False, id="prompt.kill_start"),
        Binding("ctrl+k", "kill_to_end", _("Cut to the end of the line"), show=False, id="prompt.kill_end"),
        Binding("ctrl+y", "yank", _("Put back what was cut"), show=False, id="prompt.yank"),
        Binding("ctrl+underscore", "undo", _("Undo"), show=False, id="prompt.undo"),
        Binding("ctrl+d", "delete_or_leave", _("Quit, on nothing"), show=False, id="prompt.leave"),
        Binding("ctrl+z", "app.suspend_process", _("To the shell"), show=False, id="prompt.suspend"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        self.pastes = Pastes()
        super().__init__(
            id=id, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False, tab_behavior="focus"
        )
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self._killed = ""
        self.take_key: Callable[[events.Key], bool] = lambda event: False
        """Asked first about each key; True when it is done with."""
        self.take_paste: Callable[[str], None] = lambda text: None
        """Is given what was pasted."""

    async def _on_key(self, event: events.Key) -> None:
        if self.take_key(event) or await self._edited(event):
            event.stop()
            event.prevent_default()

    async def _edited(self, event: events.Key) -> bool:
        """Obeys a key that edits, at once: the toolkit would after the next key had been typed already."""
        bound = None if event.is_printable else self.screen.active_bindings.get(event.key)
        if bound is None or bound.node is not self or not bound.enabled:
            return False
        if "." in bound.binding.action or (bound.binding.action == "delete_or_leave" and not self.text):
            return False
        return await self.app.run_action(bound.binding.action, self)  # not, where nothing is marked to be copied

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.take_paste(event.text)

    # What is seen

    def get_line(self, line_index: int) -> Text:
        """The line with control characters as pictures of one cell, so that none reaches the terminal."""
        line = self.document.get_line(line_index)
        shown = line if line.isprintable() else line.translate(_PICTURES)
        text = Text(shown, end="", no_wrap=True)
        for start, end in self.pastes.spans(line):
            text.stylize("reverse", start, end)
        return text

    # Where the cursor may stand

    def _validate_selection(self, selection: Selection) -> Selection:
        selection = super()._validate_selection(selection)
        start, end = self._outside(selection.start), self._outside(selection.end)
        return selection if (start, end) == tuple(selection) else Selection(start, end)

    def _outside(self, location: Location) -> Location:
        """The nearest edge of the token a place is inside of."""
        row, column = location
        if row >= self.document.line_count:
            return location
        for start, end in self.pastes.spans(self.document.get_line(row)):
            if start < column < end:
                return (row, start if column - start <= end - column else end)
        return location

    def get_cursor_left_location(self) -> Location:
        """One cluster or token to the left."""
        row, column = self.cursor_location
        if column == 0:
            return super().get_cursor_left_location()
        line = self.document.get_line(row)
        for start, end in self.pastes.spans(line):
            if end == column:
                return (row, start)
        return (row, max((start for start, _end in _clusters(line) if start < column), default=0))

    def get_cursor_right_location(self) -> Location:
        """One cluster or token to the right."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if column >= len(line):
            return super().get_cursor_right_location()
        for start, end in self.pastes.spans(line):
            if start == column:
                return (row, end)
        return (row, min((end for _start, end in _clusters(line) if end > column), default=len(line)))

    # What readline has and the toolkit has not

    def _kill(self, start: Location, end: Location) -> None:
        first, last = sorted((start, end))
        if first != last:
            self._killed = self.get_text_range(first, last)
            self.delete(first, last)

    def action_kill_word(self) -> None:
        """Cuts the word before the cursor."""
        if self.selected_text:
            self._kill(*self.selection)
            return
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if column == 0:
            self.action_delete_left()
            return
        at = len(line[:column].rstrip())
        while at > 0 and not line[at - 1].isspace():
            at -= 1
        self._kill((row, column), self._outside((row, at)))

    def action_kill_to_start(self) -> None:
        """Cuts to the start of the line."""
        row, column = self.cursor_location
        if column == 0:
            self.action_delete_left()
        else:
            self._kill((row, 0), (row, column))

    def action_kill_to_end(self) -> None:
        """Cuts to the end of the line, or the line's end itself."""
        row, column = self.cursor_location
        length = len(self.document.get_line(row))
        if column == length:
            self.action_delete_right()
        else:
            self._kill((row, column), (row, length))

    def action_yank(self) -> None:
        """Puts back what was cut last."""
        if self._killed:
            self.insert(self._killed)

    async def action_delete_or_leave(self) -> None:
        """Deletes the character under the cursor; with nothing written, leaves."""
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("app.quit_or_ask")

    @property
    def before_cursor(self) -> str:
        """The text up to the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def cursor_to_end(self) -> None:
        """Puts the cursor behind the last character."""
        self.move_cursor(self.document.end)


def _clusters(line: str) -> list[tuple[int, int]]:
    if line.isascii():
        return [(at, at + 1) for at in range(len(line))]
    return [(start, end) for start, end, _cells in split_graphemes(line)[0]]
