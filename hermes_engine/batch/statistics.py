"""Adds up a run from its records: what `statistics.json` says, over the whole run and not one invocation.

The same records give the same figures, whether they were read back or have just been made.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.batch.job import Record
from hermes_engine.messages import Usage


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows are in which state; the five always add up to `total`."""

    total: int = 0
    kept: int = 0
    rejected: int = 0
    failed: int = 0
    invalid: int = 0

    @property
    def pending(self) -> int:
        """Rows that are not settled."""
        return self.total - self.kept - self.rejected - self.failed - self.invalid

    def as_dict(self) -> dict[str, int]:
        """The object `rows` of the statistics and of events."""
        return {
            "total": self.total,
            "kept": self.kept,
            "rejected": self.rejected,
            "failed": self.failed,
            "invalid": self.invalid,
            "pending": self.pending,
        }


def exit_code(state: str, counts: Mapping[str, int]) -> int:
    """Of a command about a run that ended so: 0 all well, 1 something failed or nothing was kept, 130 interrupted."""
    if state == "interrupted":
        return 130
    clean = state == "done" and counts.get("kept", 0) and not (counts.get("failed") or counts.get("invalid"))
    return 0 if clean else 1


def number(values: Mapping[str, Any], name: str) -> float:
    """A number of an index file; 0 where it is none: the rows are the truth."""
    value = values.get(name)
    return value if isinstance(value, int | float) and math.isfinite(value) else 0


def of_each_server(now: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What became of each server of a run, in the order in which they are named.

    Args:
        now: figures of those that ask them now (`Replica.figures`), of several processes one after another.
        before: figures of earlier invocations and of processes that are gone; what they asked counts.
    """
    found: dict[str, dict[str, Any]] = {}
    for item in now:
        told = found.setdefault(item["base_url"], {"base_url": item["base_url"], "up": True})
        told["up"] = told["up"] and bool(item.get("up"))
        told["in_flight"] = told.get("in_flight", 0) + int(number(item, "in_flight"))
        _add(told, item)
    for item in before:
        _add(found.setdefault(item["base_url"], {"base_url": item["base_url"], "up": False, "in_flight": 0}), item)
    return list(found.values())


def _add(told: dict[str, Any], item: Mapping[str, Any]) -> None:
    for name in ("requests", "rows", "downs"):
        told[name] = told.get(name, 0) + int(number(item, name))


def usage_of(record: Mapping[str, Any]) -> Usage:
    """The usage a record carries; unknown where it carries none."""
    told = record.get("usage")
    if not isinstance(told, dict):
        return Usage(tokens_known=False, cost_known=False)
    return Usage(
        int(number(told, "prompt_tokens")),
        int(number(told, "completion_tokens")),
        int(number(told, "reasoning_tokens")),
        bool(told.get("tokens_known")),
        float(number(told, "cost_usd")),
        bool(told.get("cost_known")),
    )


@dataclass(slots=True)
class Spending:
    """A sum of usages that can be taken back, and of how many parts the figures are unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unknown_tokens: int = 0
    unknown_cost: int = 0

    def add(self, usage: Usage, sign: int = 1) -> None:
        """Adds a usage, or takes it away."""
        self.prompt_tokens += sign * usage.prompt_tokens
        self.completion_tokens += sign * usage.completion_tokens
        self.reasoning_tokens += sign * usage.reasoning_tokens
        self.cost_usd += sign * usage.cost_usd
        self.unknown_tokens += sign * (not usage.tokens_known)
        self.unknown_cost += sign * (not usage.cost_known)

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion tokens that are known."""
        return self.prompt_tokens + self.completion_tokens

    def as_dict(self) -> dict[str, Any]:
        """What is known, and whether that is all."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "total_tokens": self.total_tokens,
            "tokens_known": not self.unknown_tokens,
            "cost_usd": abs(round(self.cost_usd, 8)),
            "cost_known": not self.unknown_cost,
        }


@dataclass(slots=True)
class Tally:
    """Running sums over records. A failed row that runs again is taken out first."""

    tools: dict[str, list[int]] = field(default_factory=dict)
    invented: Counter[str] = field(default_factory=Counter)
    reasoning: list[int] = field(default_factory=lambda: [0, 0])
    stops: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    draws: Counter[str] = field(default_factory=Counter)
    combinations: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    api_calls: int = 0
    retries: int = 0
    usage: Spending = field(default_factory=Spending)

    def kept(self, record: Record) -> None:
        """A row that is training data."""
        self._judged(record)
        self.stops[str(record.get("stop_reason"))] += 1
        self.models[str(record.get("metadata", {}).get("model"))] += 1
        for name, item in record.get("tool_stats", {}).items():
            sums = self.tools.setdefault(name, [0, 0, 0])
            sums[0] += item["count"]
            sums[1] += item["success"]
            sums[2] += item["failure"]

    def rejected(self, record: Record) -> None:
        """A row that a filter turned away."""
        self._judged(record)
        self.rejects[str(record.get("reject_reason"))] += 1
        self.invented.update(record.get("invented_tools", {}))

    def failed(self, record: Record, sign: int = 1) -> None:
        """A row that failed; with sign −1 it is failed no more."""
        self.failures[str(record.get("error_kind"))] += sign
        self._spent(record, sign)

    def _judged(self, record: Record) -> None:
        reasoning = record.get("reasoning", {})
        self.reasoning[0] += reasoning.get("turns", 0)
        self.reasoning[1] += reasoning.get("with_reasoning", 0)
        self._spent(record, 1)

    def _spent(self, record: Record, sign: int) -> None:
        sets = record.get("toolsets_used", [])
        for name in sets:
            self.draws[name] += sign
        self.combinations["+".join(sets) or "none"] += sign
        self.api_calls += sign * record.get("api_calls", 0)
        self.retries += sign * record.get("retries", 0)
        self.usage.add(usage_of(record), sign)

    def figures(self, tools: Iterable[str]) -> dict[str, Any]:
        """The part of `statistics.json` that comes from records; `tools` are all that could be offered."""
        turns, thinking = self.reasoning
        return {
            "tools": {name: _rates(*self.tools.get(name, (0, 0, 0))) for name in dict.fromkeys((*tools, *self.tools))},
            "invented_tools": dict(sorted(self.invented.items())),
            "reasoning": {
                "turns": turns,
                "with_reasoning": thinking,
                "without_reasoning": turns - thinking,
                "coverage": _share(thinking, turns),
                "rejected_rows_included": True,
            },
            "stop_reasons": _present(self.stops),
            "rejects": _present(self.rejects),
            "failures": _present(self.failures),
            "toolset_draws": _present(self.draws),
            "toolset_combinations": _present(self.combinations),
            "models": _present(self.models),
            "api_calls": self.api_calls,
            "retries": self.retries,
            "usage": self.usage.as_dict(),
        }


def _present(counter: Counter[str]) -> dict[str, int]:
    return {name: number for name, number in sorted(counter.items()) if number}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _rates(count: int, success: int, failure: int) -> dict[str, Any]:
    return {
        "count": count,
        "success": success,
        "failure": failure,
        "success_rate": _share(success, count),
        "failure_rate": _share(failure, count),
    }


def stated_and_drawn(odds: Mapping[str, Any], figures: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Each toolset with its stated odds and the share of rows that have it, from 0 to 1.

    Args:
        odds: `toolset_odds` of `run.json`.
        figures: content of `statistics.json`. Rows that name their toolsets are among them.
    """
    rows = figures.get("rows", {})
    ran = sum(rows.get(name, 0) for name in ("kept", "rejected", "failed"))
    drawn = figures.get("toolset_draws", {})
    names = dict.fromkeys((*odds, *drawn))
    return [(name, float(odds.get(name, 0)), drawn.get(name, 0) / ran) for name in names] if ran else []
