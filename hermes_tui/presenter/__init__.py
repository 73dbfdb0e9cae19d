"""Turns what the engine says into what the screen shows: `chat` events into blocks, `history` saved messages into
blocks, `work` the state of everything that runs into facts. Knows events and widgets' values, no screen.
"""

from hermes_tui.presenter.chat import ChatPresenter
from hermes_tui.presenter.history import blocks_of
from hermes_tui.presenter.work import Work

__all__ = ["ChatPresenter", "Work", "blocks_of"]
