"""Token counts and money of one reply, as servers tell them: cumulative, in several chunks, or not at all. Pure."""

from __future__ import annotations

from typing import Any

from hermes_engine.messages import Usage


class UsageReader:
    """Takes `usage` objects; each figure counts as its largest value, since they are told cumulatively.

    Attributes:
        cached: prompt tokens the server took from its cache.
    """

    def __init__(self) -> None:
        self._prompt = 0
        self._completion = 0
        self._reasoning = 0
        self._cost: float | None = None
        self.cached = 0

    def feed(self, usage: Any) -> None:
        """One `usage` object; anything else is ignored."""
        if not isinstance(usage, dict):
            return
        self._prompt = max(self._prompt, _count(usage.get("prompt_tokens")))
        self._completion = max(self._completion, _count(usage.get("completion_tokens")))
        details = usage.get("completion_tokens_details")
        told = details.get("reasoning_tokens") if isinstance(details, dict) else None
        self._reasoning = max(self._reasoning, _count(told), _count(usage.get("reasoning_tokens")))
        prompt_details = usage.get("prompt_tokens_details")
        if isinstance(prompt_details, dict):
            self.cached = max(self.cached, _count(prompt_details.get("cached_tokens")))
        cost = usage.get("cost", usage.get("estimated_cost"))
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf"):
            self._cost = max(self._cost or 0.0, float(cost))

    def result(self, *, answered: bool) -> Usage:
        """The figures; a reply that says something and counts nothing has told nothing."""
        known = self._prompt > 0 or (self._completion > 0 and answered)
        return Usage(
            self._prompt,
            self._completion,
            self._reasoning,
            tokens_known=known,
            cost_usd=self._cost or 0.0,
            cost_known=self._cost is not None,
        )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0
    return int(value)
