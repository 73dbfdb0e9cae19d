"""The input: `area` edits, `pastes` keeps what was pasted, `history` what was sent, `prompt` puts them together."""

from hermes_tui.widgets.prompt.history import History
from hermes_tui.widgets.prompt.prompt import Prompt

__all__ = ["History", "Prompt"]
