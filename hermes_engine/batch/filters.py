"""Judges a row that ended: failed, rejected by a filter, or kept. Pure; a provider's error is never a rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes_engine.batch.job import RowResult
from hermes_engine.batch.trajectory import KEPT_STOPS, reasoning_of, thought_and_text

NO_REASONING = "no_reasoning"
INVENTED_TOOL = "invented_tool"
EMPTY_ANSWER = "empty_answer"
NOTHING_BEFORE_THE_CUT = "the reply was cut at the token limit before its answer — raise --max_tokens"

WHAT_TO_DO = {
    NO_REASONING: "the model gave no reasoning in any turn: ask for it with --reasoning_effort high, take a model that "
    "reasons, or keep such rows with --keep_without_reasoning",
    INVENTED_TOOL: "the model called tools that were not on offer: widen the --distribution, or take another model",
}
"""Reason → what a person can do about it."""


CHOSEN = "a --filter drops them: give it another value, or leave it out"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a row.

    Attributes:
        outcome: kept | rejected | failed.
        reason: stable word for the statistics, "" when kept.
        detail: one line for a person.
    """

    outcome: Literal["kept", "rejected", "failed"]
    reason: str = ""
    detail: str = ""


KEPT = Verdict("kept")


def judged(result: RowResult, *, keep_without_reasoning: bool = False) -> Verdict:
    """The verdict on a row."""
    if result.stop_reason not in KEPT_STOPS:
        return Verdict("failed", result.error_kind or result.stop_reason, result.error or result.stop_reason)
    spoke = any(message.role == "assistant" for message in result.conversation)
    if not spoke or (result.stop_reason in ("done", "length") and not _last_words(result)):
        cut = result.stop_reason == "length"
        return Verdict("failed", EMPTY_ANSWER, NOTHING_BEFORE_THE_CUT if cut else "the last answer is empty")
    if not keep_without_reasoning and not reasoning_of(result.conversation)["with_reasoning"]:
        return Verdict("rejected", NO_REASONING, "no turn has reasoning")
    invented = invented_tools(result)
    if invented:
        return Verdict("rejected", INVENTED_TOOL, f"called tools that were not on offer: {', '.join(invented)}")
    return KEPT


def _last_words(result: RowResult) -> bool:
    """Whether the conversation ends in an assistant message that says or calls something."""
    last = result.conversation[-1] if result.conversation else None
    return last is not None and last.role == "assistant" and bool(thought_and_text(last)[1].strip() or last.tool_calls)


def invented_tools(result: RowResult) -> list[str]:
    """Names that were called but were not on offer, in the order of their first call."""
    offered = set(result.offered)
    called = (call.name for message in result.conversation for call in message.tool_calls)
    return [name for name in dict.fromkeys(called) if name not in offered]
