"""Answers requests: which one is next, what a key means for it, when a yes may count. Knows the transcript and the
prompt of one chat.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_tui.screens.chat.digits import Digits
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import Option, RequestBlock
from hermes_tui.widgets.facts import AskFact

if TYPE_CHECKING:
    from hermes_tui.desk import Desk
    from hermes_tui.widgets.prompt import Prompt
    from hermes_tui.widgets.transcript import Transcript

Replying = tuple[RequestBlock, Option | None]
"""The request the prompt is lent to, and the choice that asks for words."""


class Asking:
    """The requests of one chat."""

    def __init__(
        self, desk: Desk, waiting: Callable[[], list[RequestBlock]], transcript: Transcript, prompt: Prompt
    ) -> None:
        self._desk, self._all, self._transcript, self._prompt = desk, waiting, transcript, prompt
        self._given: set[str] = set()
        self._row: set[str] = set()
        """Requests like the one answered last that waited beside it: the person is at it, and no moment is needed."""
        self.digits = Digits(self, prompt)
        self.hint = ""
        self.changed: Callable[[], object] = lambda: None
        """Called when what the line above the prompt says has changed by itself."""

    def _waiting(self) -> list[RequestBlock]:
        """Requests nobody has answered, oldest first; of an answer the engine tells a little later."""
        return [block for block in self._all() if block.request not in self._given]

    def asked(self, request: str = "") -> RequestBlock | None:
        """That request, or the oldest one."""
        return next((block for block in self._waiting() if request in ("", block.request)), None)

    def ready(self, block: RequestBlock) -> bool:
        """Whether a key of now may be meant for it: it has been there for a moment, or is the next of a row."""
        seen = block.shown_at is None or block.takes_keys(time.monotonic())
        return block.waiting and (seen or self.in_row(block))

    def gone(self, block: RequestBlock) -> bool:
        """Whether it needs no answer any more."""
        return not block.waiting or block.request in self._given

    def in_row(self, block: RequestBlock) -> bool:
        """Whether it is like the one answered last, and waited already then."""
        return block.request in self._row

    def show(self, block: RequestBlock) -> None:
        """Brings a request into view."""
        self._transcript.reveal(block)

    @property
    def _replying(self) -> Replying | None:
        """What the prompt is lent to."""
        about = self._prompt.about
        return about if isinstance(about, tuple) else None

    @property
    def focused(self) -> RequestBlock | None:
        """The request the keys act on, while the transcript has the focus."""
        block = self._transcript.cursor_block
        return block if self._transcript.has_focus and isinstance(block, RequestBlock) and block.waiting else None

    def fact(self) -> AskFact | None:
        """The request for the line above the prompt."""
        waiting = self._waiting()
        if not waiting:
            return None
        block = self.focused or (self._replying[0] if self._replying else self.digits.block) or waiting[0]
        title = block.title if not block.detail or "\n" in block.detail.strip() else f"{block.title}: {block.detail}"
        if title.count(block.detail) > 1:
            title = block.title
        return AskFact(block.asker, title, len(waiting) - 1, self._digits(block), question=not block.reason)

    def enter_words(self) -> str:
        """What Enter and Esc do while the prompt is lent, else ""."""
        if self._replying is None:
            return ""
        refuses = self._replying[1] is not None and self._replying[1].choice == "no"
        return _("Enter refuses it · Esc goes back") if refuses else _("Enter answers · Esc goes back")

    def _digits(self, block: RequestBlock) -> str:
        if self._replying is not None:
            return self.enter_words()
        if not block.options or block.options[0].choice == "answer" or not self._prompt.empty:
            return ""
        if block.shown_at is None:
            return _("PgDn to its end")
        if self.digits.wants_enter and block.selected_option is not None:
            return _("Enter: {choice} · Esc goes back").format(choice=block.selected_option.label)
        words = {"once": _("yes"), "session": _("this session"), "no": _("no"), "always": _("always")}
        return " · ".join(f"{option.digit} {words[option.choice]}" for option in block.options)

    # Keys

    def intercept(self, character: str) -> bool:
        """A key where nothing is typed: a digit that answers the oldest request."""
        block = self.asked()
        option = block.option_for(character) if block is not None and character.isdecimal() else None
        if block is None or option is None or self._prompt.lent or not self.ready(block):
            return False
        self.choose(block, option)
        return True

    def key(self, key: str, character: str | None) -> bool:
        """A key while the request itself has the focus."""
        block = self.focused
        option = block.option_for(character or "") if block is not None else None
        if block is None or (option is None and key not in ("left", "up", "right", "down", "enter")):
            return False
        if option is not None:
            self.choose(block, option)
        elif key != "enter":
            block.move(-1 if key in ("left", "up") else 1)
        elif block.selected_option is not None:
            self.choose(block, block.selected_option)
        elif not block.options:
            self.reply(block, None)
        self.changed()
        return True

    def look(self) -> bool:
        """Goes to the next request; whether there is one."""
        waiting = self._waiting()
        if not waiting:
            return False
        self.digits.drop()
        current = self.focused
        place = waiting.index(current) + 1 if current in waiting else 0
        return self.go_to(waiting[place % len(waiting)].request)

    def go_to(self, request: str) -> bool:
        """Goes to that request; whether it waits."""
        block = self.asked(request) if request else None
        if block is None:
            return False
        self._transcript.select(block)
        if block.options:
            self._transcript.focus()
        else:
            self.reply(block, None)
        return True

    # Answers

    def choose(self, block: RequestBlock, option: Option) -> None:
        """Takes a choice, unless it is a yes to something whose end was not on the screen long enough."""
        if option.choice in ("once", "session", "always") and (block.shown_at is None or not self.ready(block)):
            self._transcript.reveal(block)
            if block.shown_at is None:
                self.hint = _("Read it to its end first: PgDn")
            self.changed()
            return
        self.hint = ""
        if option.asks_text:
            self.reply(block, option)
            return
        self._settle(block, option.choice, option.note)

    def reply(self, block: RequestBlock, option: Option | None) -> None:
        """Lends the prompt to the words of an answer."""
        refuses = option is not None and option.choice == "no"
        words, hint = (_("why not"), _("a reason, or Enter alone")) if refuses else (_("answer"), _("your words"))
        self._prompt.lend(words, (block, option), wordy=not refuses, hint=hint)
        self._prompt.focus_input()
        self.changed()

    def offer(self, block: RequestBlock) -> None:
        """A question without choices came: with nothing written, the prompt is for the answer. Not for one from
        beside: what is typed next was meant for the chat.
        """
        if not (block.options or block.beside) and self._prompt.empty and not self._prompt.lent:
            self._transcript.select(block, show=False)
            self.reply(block, None)

    def answer(self, text: str, about: object) -> None:
        """The words for the request the prompt was lent to."""
        if not isinstance(about, tuple) or not about[0].waiting:
            self.hint = _("That question no longer waits")
            self.changed()
            return
        block, option = about
        self._settle(block, "no" if option is not None and option.choice == "no" else "answer", text.strip())

    def settled(self) -> None:
        """Requests may have gone: a prompt that was lent to one of them is given back, the keys too."""
        self.digits.settled()
        if self._replying is not None and not self._replying[0].waiting:
            self._prompt.give_back()
        block = self._transcript.cursor_block
        if isinstance(block, RequestBlock) and not block.waiting:
            self._transcript.select(None)
            if self._transcript.has_focus:
                self._prompt.focus_input()

    def _settle(self, block: RequestBlock, choice: str, note: str) -> None:
        self._given.add(block.request)
        self._row = {other.request for other in self._waiting() if block.like(other)}
        self.hint = ""
        self._send(block, choice, note)
        self.changed()

    def _send(self, block: RequestBlock, choice: str, note: str) -> None:
        from hermes_engine.requests import Answer

        engine = self._desk.engine
        if engine is not None and not engine.answer(block.request, Answer(choice, note)):  # type: ignore[arg-type]
            self.hint = _("That question no longer waits")
        self._transcript.select(None)
        self._prompt.focus_input()
