"""Digits typed into the empty prompt while something waits: an answer, or the beginning of a message? One is held for a
moment and answers when nothing follows; what allows more than one thing also wants Enter. Knows the requests of a chat
and its prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual import events

    from hermes_tui.screens.chat.asking import Asking
    from hermes_tui.widgets.blocks import Option, RequestBlock
    from hermes_tui.widgets.prompt import Prompt

MOMENT = 0.3
"""Seconds without another key after which a digit was meant as an answer."""

BURST = 0.05
"""Keys that come closer than so many seconds were not pressed one by one: they answer nothing."""

KEPT = 2.0
"""Seconds for which digits that answer nothing may still turn out to be the beginning of a message."""

STEP = 0.05
TRIES = 20
"""How often, and for how long, the next of a row is waited for to be drawn."""


class Digits:
    """See the module's docstring."""

    def __init__(self, asking: Asking, prompt: Prompt) -> None:
        self._asking, self._prompt = asking, prompt
        self._held = ""
        self._live = False
        self._block: RequestBlock | None = None
        self._last = 0.0
        self._due = 0
        """Answers the next ones in the row are still to get."""
        self._round = 0
        """Counts what was done to the held digits, so that a timer knows whether it is late."""
        self.wants_enter = False
        """One is held that counts after Enter."""

    @property
    def block(self) -> RequestBlock | None:
        """What the held digits would answer."""
        return self._block if self._held else None

    def take(self, event: events.Key, request: str = "") -> bool:
        """A key where words could be typed; True when it is done with. `request`: what it would answer, else the
        oldest.
        """
        gap, self._last = event.time - self._last, event.time
        if self._prompt.lent or not self._prompt.empty:
            self.drop()
            return False
        character = event.character if event.is_printable and event.character else ""
        block = self._asking.asked(request)
        option = block.option_for(character) if block is not None and character.isdecimal() else None
        if block is not None and option is not None:
            self._hold(block, option, character, alone=gap >= BURST)
            return True
        self._due = 0
        if not self._held:
            return False
        if event.key == "enter" and self._live and gap >= BURST:
            self._answer(sure=True)
            return True
        if event.key == "enter" and len(set(self._held)) == 1:  # typed ahead for something else, or too fast
            self.drop()
            self._say_again()
            return True
        if event.key in ("escape", "backspace"):
            self.drop()
            self._asking.changed()
            return True
        self.write()
        return False

    def write(self) -> None:
        """The held digits were the beginning of a message."""
        held = self._held
        self.drop()
        if held:
            self._prompt.insert(held)

    def drop(self) -> None:
        """Forgets the held digits."""
        if self._block is not None:
            self._block.choose(None)
        self._held, self._block, self._live, self.wants_enter = "", None, False, False
        self._round += 1

    def settled(self) -> None:
        """Requests may have gone."""
        if self._block is not None and not self._block.waiting:
            self.drop()

    def _hold(self, block: RequestBlock, option: Option, character: str, *, alone: bool) -> None:
        self._asking.hint = ""
        takes = alone and self._asking.ready(block)
        if alone and (not self._live or self.wants_enter):
            self.drop()  # those before answer nothing
        row = not self._held or (set(self._held) == {character} and option.choice == "once")
        self._live = takes and row and (self._live or not self._held)
        self._held += character
        self._block = block
        block.choose(option if self._live else None)
        self._later(MOMENT, self._decide)
        self._asking.changed()

    def _later(self, seconds: float, then: Callable[[], None]) -> None:
        self._round = round_ = self._round + 1
        self._prompt.set_timer(seconds, lambda: then() if round_ == self._round else None)

    def _decide(self) -> None:
        """Nothing followed."""
        if self._live:
            self._answer(sure=False)
        else:
            self._say_again()

    def _say_again(self) -> None:
        """It was no answer: says so for a while, in which words may still make held digits a message."""
        self._asking.hint = words = _("Too soon or too fast to be an answer: press it again")

        def forget() -> None:
            self.drop()
            if self._asking.hint == words:
                self._asking.hint = ""
                self._asking.changed()

        self._later(KEPT, forget)
        self._asking.changed()

    def _answer(self, *, sure: bool) -> None:
        block, held = self._block, self._held
        if block is not None and self._asking.gone(block):
            following = self._asking.asked()  # one of a row, which got its answer meanwhile
            block = following if following is not None and self._asking.in_row(following) else None
        option = block.option_for(held[0]) if block is not None else None
        if block is None or option is None:
            self.drop()
        elif sure or option.choice not in ("session", "always"):
            self.drop()
            self._asking.choose(block, option)
            self._due += len(held) - 1
            self._go_on(TRIES)
        elif self._prompt.area.has_focus:
            self.wants_enter = True
        else:
            self.drop()
            self._asking.go_to(block.request)
            block.choose(option)
        self._asking.changed()

    def _go_on(self, tries: int) -> None:
        """Says yes to the next ones in the row too, each when it stands on the screen."""
        while self._due:
            block = self._asking.asked()
            option = block.option_for("1") if block is not None else None
            if block is None or option is None or not self._asking.in_row(block) or not tries:
                self._due = 0
                return
            if block.shown_at is None:
                self._asking.show(block)
                self._prompt.set_timer(STEP, partial(self._go_on, tries - 1))
                return
            self._due, tries = self._due - 1, TRIES
            self._asking.choose(block, option)
            self._asking.changed()
