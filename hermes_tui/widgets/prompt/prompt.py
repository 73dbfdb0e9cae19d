"""The prompt: the editor with its sign, what Enter and the arrows mean, and how it is lent to a question.

It says what the person wants; what follows from that is the screen's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.menu import Menu, Proposal
from hermes_tui.widgets.prompt.area import Area
from hermes_tui.widgets.prompt.history import History
from hermes_tui.widgets.prompt.pastes import as_pasted, needs_token

NEWLINE_KEYS = frozenset({"ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"})


@dataclass(frozen=True, slots=True)
class Loan:
    """The prompt lent to a question: what for, in words; the draft that waits meanwhile; which question; whether an
    answer needs words.
    """

    purpose: str
    draft: str
    about: object
    wordy: bool


class Prompt(Horizontal):
    """One draft. `purpose` of what is sent is "" for an ordinary message."""

    class Sent(Message):
        """Enter on a draft; empty when there was none. The prompt is empty by now, or holds the draft that waited:
        what is typed after Enter is another text. `about` is what the prompt was lent to. `now`: not to be queued.
        """

        def __init__(self, text: str, purpose: str, about: object, *, now: bool = False) -> None:
            super().__init__()
            self.text, self.purpose, self.about, self.now = text, purpose, about, now

    class Edited(Message):
        """The draft changed."""

    class TakeBack(Message):
        """The arrow up on an empty prompt: the last queued message, if there is one."""

    class Edge(Message):
        """Home or End on an empty prompt: the oldest or newest text of the transcript."""

        def __init__(self, newest: bool) -> None:
            super().__init__()
            self.newest = newest

    class Escaped(Message):
        """Esc with nothing to close here."""

    def __init__(self, menu: Menu, history: History, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.menu, self.history = menu, history
        self.intercept: Callable[[events.Key], bool] = lambda event: False
        """Asked first about each key; True when it was meant for something else."""
        self.pasting: Callable[[], None] = lambda: None
        """Called before a paste is put in."""
        self.completes: Callable[[], bool] = lambda: False
        """Asked on Enter: may put a proposal in; True when more is to be written before anything is sent."""
        self.queue_waits: Callable[[], bool] = lambda: False
        """Whether the arrow up on an empty prompt takes a queued message back."""
        self.changed: Callable[[], None] = lambda: None
        """Called at each edit."""
        self.label = ""
        """Whom one talks to, where it is not the chat."""
        self._loan: Loan | None = None
        self._hint = ""
        self._area = Area(id="area")
        self._area.take_key = self.take_key
        self._area.take_paste = self.take_paste
        self._mark = Static("", id="prompt-mark", markup=False)

    def compose(self) -> ComposeResult:
        yield self._mark
        yield self._area

    def on_mount(self) -> None:
        """Shows the sign."""
        self.redraw()

    def redraw(self) -> None:
        """Draws the sign in the look of now."""
        look = look_of(self)
        words = self._loan.purpose if self._loan else self.label
        name = f"{words} " if words else ""
        self._mark.update(Text(f"{name}{look.glyphs.prompt} ", look.accent if self._area.has_focus else look.faint))

    # The draft

    @property
    def area(self) -> Area:
        """The editor."""
        return self._area

    @property
    def text(self) -> str:
        """The draft as it would be sent: tokens are their texts."""
        return self._area.pastes.expand(self._area.text)

    @property
    def own_text(self) -> str:
        """The person's draft as it would be sent, also while the prompt is lent."""
        return self._area.pastes.expand(self._loan.draft) if self._loan else self.text

    @property
    def draft(self) -> str:
        """The draft as it is shown."""
        return self._area.text

    @property
    def empty(self) -> bool:
        """Whether nothing is written."""
        return not self._area.text

    @property
    def about(self) -> object:
        """What the prompt is lent to, or None."""
        return self._loan.about if self._loan else None

    @property
    def lent(self) -> str:
        """What the prompt is lent for, "" for nothing."""
        return self._loan.purpose if self._loan else ""

    def set_draft(self, text: str) -> None:
        """Puts a text into the prompt, the cursor at its end; a long one as a token."""
        self._area.text = self._area.pastes.add(text) if needs_token(text) else text
        self._area.cursor_to_end()

    def clear(self) -> None:
        """Empties the prompt."""
        self._area.text = ""
        self._area.pastes.clear()
        self.menu.close()

    def put_back(self, text: str) -> None:
        """What was taken could not be sent: it stands before what was written since."""
        self.set_draft(text if self.empty else f"{text}\n{self.text}")

    def insert(self, text: str) -> None:
        """Types a text at the cursor."""
        self._area.insert(text)

    def focus_input(self) -> None:
        """The keys go to the editor."""
        self._area.focus()

    def hint(self, words: str) -> None:
        """The words shown while nothing is written."""
        self._hint = words
        self._area.placeholder = Content(words)

    def lend(self, purpose: str, about: object = None, *, wordy: bool = False, hint: str = "") -> None:
        """From now on what is sent is an answer; the draft waits. `wordy`: Enter alone is no answer; `hint`: shown
        while none is written.
        """
        self._area.placeholder = Content(hint)
        if self._loan is None:
            self._loan = Loan(purpose, self._area.text, about, wordy)
            self._area.text = ""
        else:
            self._loan = Loan(purpose, self._loan.draft, about, wordy)
        self.redraw()

    def give_back(self) -> None:
        """The draft is back, what was written for the answer is gone."""
        if self._loan is not None:
            draft, self._loan = self._loan.draft, None
            self._area.text = draft
            self._area.placeholder = Content(self._hint)
            self._area.cursor_to_end()
            self.redraw()

    def accept(self, proposal: Proposal) -> None:
        """Puts a proposal in place of what it completes."""
        self.menu.close()
        before = self._area.before_cursor
        row, column = self._area.cursor_location
        line_start = len(before) - column
        start = max(0, proposal.start - line_start)
        self._area.replace(proposal.text, (row, start), (row, column))

    # Keys

    def take_key(self, event: events.Key) -> bool:
        """Acts on a key of the editor; whether it is done with."""
        key = event.key
        if self.intercept(event):
            return True
        if key in NEWLINE_KEYS:
            self._area.insert("\n")
            return True
        if key == "enter":
            self._enter()
            return True
        if key == "ctrl+s":
            self.send_now()
            return True
        if key == "escape":
            self._escape()
            return True
        if self.menu.is_open and key in ("up", "down", "tab"):
            self._menu_key(key)
            return True
        if key in ("up", "down") and not self._loan:
            return self._arrow(-1 if key == "up" else 1)
        if key in ("home", "end") and self.empty:
            self.post_message(self.Edge(key == "end"))
            return True
        if event.is_printable:
            self.history.leave()
        return False

    def _enter(self) -> None:
        area = self._area
        before, whole = area.before_cursor, area.text
        if before.endswith("\\") and len(before) == len(whole):
            row, column = area.cursor_location
            area.replace("\n", (row, column - 1), (row, column))
            return
        if self._loan is None and self.completes():
            return
        # all at once: the next key may be handled before the message is
        text, purpose, about = self.text, self.lent, self.about
        if self._loan is None:
            self.clear()
        elif self._loan.wordy and not text.strip():
            return
        else:
            self.give_back()
        self.post_message(self.Sent(text, purpose, about))

    def send_now(self) -> None:
        """As Enter, but for what is written to be heard at once."""
        if self._loan is None:
            text = self.text
            self.clear()
            self.post_message(self.Sent(text, "", None, now=True))

    def _escape(self) -> None:
        if self.menu.is_open:
            self.menu.close()
        elif self._loan is not None:
            self.give_back()
        else:
            self.post_message(self.Escaped())

    def _menu_key(self, key: str) -> None:
        if key == "tab":
            chosen = self.menu.chosen
            if chosen is not None:
                self.accept(chosen)
        else:
            self.menu.move(-1 if key == "up" else 1)

    def _arrow(self, step: int) -> bool:
        """History, from the first line upwards and from the last line downwards."""
        area = self._area
        if step < 0 and self.empty and self.queue_waits():
            self.post_message(self.TakeBack())
            return True
        at_edge = area.cursor_at_first_line if step < 0 else area.cursor_at_last_line
        if not at_edge and not self.history.walking:
            return False
        if not at_edge:
            return False
        text = self.history.move(step, self.text)
        if text is None:
            return False
        self.set_draft(text)
        return True

    def take_paste(self, text: str) -> None:
        """Puts pasted text in, or a token for it."""
        self.pasting()
        text = as_pasted(text)
        area = self._area
        shown = area.pastes.add(text) if needs_token(text) else text
        result = area.replace(shown, *area.selection, maintain_selection_offset=False)
        area.move_cursor(result.end_location)

    def show_paste(self) -> bool:
        """Opens the token at or before the cursor into its text; whether there was one."""
        area = self._area
        row, column = area.cursor_location
        line = area.document.get_line(row)
        spans = area.pastes.spans(line)
        chosen = next(((start, end) for start, end in spans if start <= column <= end), spans[-1] if spans else None)
        if chosen is None:
            return False
        text = area.pastes.open(line[chosen[0] : chosen[1]])
        if text is None:
            return False
        area.replace(text, (row, chosen[0]), (row, chosen[1]))
        return True

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Tells of an edit."""
        event.stop()
        self.changed()
        self.post_message(self.Edited())

    def on_descendant_focus(self) -> None:
        """The sign shows where the keys go."""
        self.redraw()

    def on_descendant_blur(self) -> None:
        """The sign shows where the keys go."""
        self.redraw()
