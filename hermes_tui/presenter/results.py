"""A task's result as a block of its chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_tui.widgets.blocks import ResultBlock

if TYPE_CHECKING:
    from hermes_tui.outcomes import Outcome


def result_block(outcome: Outcome) -> ResultBlock:
    """What an agent that has ended brought."""
    return ResultBlock(
        outcome.id,
        name=outcome.name,
        state=outcome.state,
        heading=outcome.heading,
        task=outcome.task,
        answer=outcome.answer,
        forked=outcome.kind == "child",
        remains=tuple(outcome.remains()),
    )
