"""What the index files say of a run: content of `checkpoint.json` and `statistics.json` from its rows and its account.

Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes_engine.batch.plan import Plan
from hermes_engine.batch.statistics import Counts, Spending, number, usage_of
from hermes_engine.batch.writer import now

State = Literal["running", "done", "interrupted", "stopped", "failed"]
"""done | interrupted (a person asked) | stopped (a cap, the server) | failed (a fault)."""

LINES_NAMED = 100
"""Invalid lines that `statistics.json` names."""


@dataclass(frozen=True, slots=True)
class Account:
    """What no row of a run tells.

    Attributes:
        name, model, distribution: of the run.
        state, reason: how it stands.
        seconds, invocations: all of them until now.
        spent: everything used, failed tries that were run again included.
        running: rows in flight.
        workers, paused: rows that may be; whether no further one is begun.
        notice: what the run warned of last, while that holds.
        times, replicas: see `docs/batch.md`.
        tokens: of rows with `--record_tokens`, see there; None without.
    """

    name: str
    model: str | None
    distribution: str
    state: State
    reason: str
    seconds: float
    invocations: int
    spent: Spending
    running: int = 0
    workers: int = 0
    paused: bool = False
    notice: str = ""
    times: Mapping[str, Any] = field(default_factory=dict)
    replicas: Sequence[Mapping[str, Any]] = ()
    tokens: Mapping[str, int] | None = None


def counts_of(plan: Plan, again: int = 0) -> Counts:
    """The run's rows by state; `again` of the failed ones are being worked."""
    ledger = plan.ledger
    return Counts(plan.total, len(ledger.kept), len(ledger.rejected), len(ledger.failed) - again, len(plan.invalid))


def checkpoint_of(account: Account, plan: Plan, counts: Counts, batches: Sequence[int]) -> dict[str, Any]:
    """Content of `checkpoint.json`: of constant size. `batches` are those that have a file."""
    return {
        "run_name": account.name,
        "state": account.state,
        "reason": account.reason,
        "updated_at": now(),
        "rows": counts.as_dict(),
        "running": account.running,
        "workers": account.workers,
        "paused": account.paused,
        "notice": account.notice,
        "removed": plan.ledger.removed,
        "next_batch": max([*(task.batch for task in plan.tasks[-1:]), *batches], default=-1) + 1,
        "seconds": round(account.seconds, 3),
        "invocations": account.invocations,
        "spent": account.spent.as_dict()
        | {"unknown_tokens": account.spent.unknown_tokens, "unknown_cost": account.spent.unknown_cost},
    }


def statistics_of(account: Account, plan: Plan, counts: Counts) -> dict[str, Any]:
    """Content of `statistics.json`; documented in `docs/batch.md`."""
    ledger, seconds = plan.ledger, account.seconds
    settled = counts.kept + counts.rejected + counts.failed
    return {
        "run_name": account.name,
        "state": account.state,
        "model": account.model,
        "distribution": account.distribution,
        "updated_at": now(),
        "rows": counts.as_dict(),
        "removed": ledger.removed,
        "completed": ledger.tally.stops["done"],
        **ledger.tally.figures(ledger.tools()),
        "spent": account.spent.as_dict(),
        "duration_seconds": round(seconds, 3),
        "invocations": account.invocations,
        "workers": account.workers,
        "times": dict(account.times),
        "replicas": [dict(item) for item in account.replicas],
        **({} if account.tokens is None else {"tokens": dict(account.tokens)}),
        "throughput": {
            "rows_per_minute": round(60 * settled / seconds, 2) if seconds else 0.0,
            "tokens_per_second": round(ledger.tally.usage.total_tokens / seconds, 2) if seconds else 0.0,
        },
        "invalid_lines": [{"line": item.line, "reason": item.reason} for item in plan.invalid[:LINES_NAMED]],
    }


def spent_until_now(checkpoints: Sequence[Mapping[str, Any]], plan: Plan) -> Spending:
    """What a run has used: as the last checkpoint says (of a merged run those of its parts), at least what its rows
    say."""
    spent, found = Spending(), False
    for checkpoint in checkpoints:
        told = checkpoint.get("spent")
        if isinstance(told, dict):
            found = True
            known = usage_of({"usage": {**told, "tokens_known": True, "cost_known": True}})
            spent.add(known)
            spent.unknown_tokens += int(number(told, "unknown_tokens"))
            spent.unknown_cost += int(number(told, "unknown_cost"))
    in_rows = plan.ledger.tally.usage
    if found and spent.total_tokens >= in_rows.total_tokens:
        return spent
    return Spending(
        in_rows.prompt_tokens,
        in_rows.completion_tokens,
        in_rows.reasoning_tokens,
        in_rows.cost_usd,
        in_rows.unknown_tokens,
        in_rows.unknown_cost,
    )
