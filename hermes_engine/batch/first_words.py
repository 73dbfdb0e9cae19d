"""What a person should know of a run before its first row. Says it to nobody itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_engine.batch.accounts import LINES_NAMED
from hermes_engine.batch.plan import Plan
from hermes_engine.batch.setup import Setup

_INVALID_TOLD = 20
_INVALID_WARNED = 3
"""So many of them as warnings: those stand in a chat too, where they would push everything else away."""


def told_first(plan: Plan, setup: Setup, work: Path, lost: int) -> Iterator[tuple[str, str]]:
    """Lines with their levels.

    Args:
        plan: of the run.
        setup: of the run.
        work: holds the rows' folders.
        lost: bytes of rows that the last checkpoint knew and the files lack.
    """
    if plan.tasks and "terminal" in setup.tools:
        yield "info", _sandbox_told(setup)
    if setup.options.keep_work:
        yield "info", f"the rows' folders stay in {work}"
    for place, item in enumerate(plan.invalid[:_INVALID_TOLD]):
        level = "warning" if place < _INVALID_WARNED else "info"
        yield level, f"{plan.dataset}:{item.line}: no row: {item.reason}"
    if len(plan.invalid) > _INVALID_WARNED:
        named = "them" if len(plan.invalid) <= LINES_NAMED else f"the first {LINES_NAMED}"
        yield "warning", f"{len(plan.invalid)} lines are no rows; statistics.json names {named}"
    if not plan.total:
        yield "warning", f"{plan.dataset} holds no prompt"
    if lost:
        yield "warning", f"{lost} bytes of rows that were written are gone from the files; their rows run again"
    if plan.ledger.damaged:
        several = f"{plan.ledger.damaged} unreadable lines were moved to damaged.txt; their rows run again"
        one = "an unreadable line was moved to damaged.txt; its row runs again"
        yield "warning", one if plan.ledger.damaged == 1 else several
    before = setup.stored.get("dataset", {}).get("sha256", plan.digest)
    if before != plan.digest:
        gone = plan.ledger.removed
        yield "warning", f"the dataset has changed since the last time; rows are found by content ({gone} removed)"


def _sandbox_told(setup: Setup) -> str:
    around, remote = setup.surroundings, setup.options.engine == "ray"
    if around.kind == "local":
        why = f" ({setup.unboxed})" if setup.unboxed else ""
        where = "each row's machine, as whoever started Ray there" if remote else "this machine, as you"
        return f"no sandbox{why}: commands of the rows run on {where}"
    return f"commands of the rows run in {around.kind}, {'with' if around.network else 'without'} network"
