"""Answers what one agent asks, with the keys of the chat; an agent of another program gets its answer by an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_tui.screens.chat.asking import Asking

if TYPE_CHECKING:
    from hermes_engine.requests import Answer
    from hermes_tui.desk import Desk
    from hermes_tui.widgets.blocks import RequestBlock
    from hermes_tui.widgets.prompt import Prompt
    from hermes_tui.widgets.transcript import Transcript


class Answering(Asking):
    """See `Asking`. `answered` is told of each answer."""

    def __init__(
        self,
        desk: Desk,
        waiting: Callable[[], list[RequestBlock]],
        transcript: Transcript,
        prompt: Prompt,
        answered: Callable[[RequestBlock, Answer], None],
    ) -> None:
        super().__init__(desk, waiting, transcript, prompt)
        self._answered = answered

    def _send(self, block: RequestBlock, choice: str, note: str) -> None:
        from hermes_engine.requests import Answer

        self._answered(block, Answer(choice, note))  # type: ignore[arg-type]
        self._transcript.select(None)
        self._transcript.focus()
