"""What letters mean on an agent's screen while its transcript has the keys."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from hermes_tui.texts import _
from hermes_tui.widgets.transcript import Transcript

LETTERS = {
    "x": "stop",
    "X": "stop(True)",
    "r": "retry",
    "d": "changes",
    "o": "promote",
    "a": "answer",
    "m": "say",
    "p": "replay",
    "+": "speed(1)",
    "-": "speed(-1)",
    "q": "back",
    "?": "keys",
    "1": "app.screen('chat')",
    "2": "app.screen('agents')",
}
"""Actions of the screen, by the letter."""


class AgentTranscript(Transcript):
    """A transcript whose brackets go to the agents beside this one, and whose `y` copies the result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "screen.sibling(-1)", _("Agent before"), show=False, id="agent.previous"),
        Binding("right_square_bracket", "screen.sibling(1)", _("Agent after"), show=False, id="agent.next"),
        Binding("y", "screen.copy", _("Copy the result"), show=False, id="agent.copy"),
    ]
