"""A run's rows counted by state, and the words for how a run stands or ended. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.batch.floor import Floor
    from hermes_engine.events import BatchFinished


@dataclass(frozen=True, slots=True)
class Counters:
    """Rows by state; they add up to `total`."""

    total: int = 0
    kept: int = 0
    rejected: int = 0
    failed: int = 0
    invalid: int = 0
    running: int = 0
    waiting: int = 0
    needs: int = 0

    @property
    def settled(self) -> int:
        """Rows that will not run again by themselves."""
        return self.total - self.running - self.needs - self.waiting

    @property
    def percent(self) -> int:
        """How much is settled."""
        return 100 * self.settled // self.total if self.total else 0


def counters(counts: Mapping[str, int], running: int, needs: int = 0) -> Counters:
    """The counters of a run that has `running` rows in flight, of which so many ask a person."""
    told = {name: max(0, int(counts.get(name, 0))) for name in ("kept", "rejected", "failed", "invalid")}
    total = max(int(counts.get("total", 0)), sum(told.values()))
    pending = total - sum(told.values())
    running = min(max(0, running), pending)
    needs = min(needs, running)
    return Counters(total, **told, running=running - needs, waiting=pending - running, needs=needs)


def counters_now(floor: Floor, known: Mapping[str, int]) -> Counters:
    """The counters of a run at work here; `known` before it tells its own."""
    rows = floor.rows
    return counters(floor.counts or known, len(rows), sum(row.asks is not None for row in rows))


def counts_words(told: Counters) -> str:
    """`60 kept, 3 failed, 12 waiting`: what there is none of is left out, but for the kept."""
    named = (
        (told.kept, _("kept")),
        (told.rejected, _("rejected")),
        (told.failed, _("failed")),
        (told.invalid, _("invalid")),
        (told.running + told.needs + told.waiting, _("waiting")),
    )
    return ", ".join(f"{count} {word}" for number, (count, word) in enumerate(named) if count or not number)


def state_word(word: str) -> str:
    """The state of a run or a row for a person."""
    return {
        "needs": _("question"),
        "running": _("running"),
        "paused": _("paused"),
        "queued": _("waits for another run"),
        "done": _("done"),
        "nothing": _("done, nothing kept"),
        "open": _("not finished"),
        "interrupted": _("interrupted"),
        "stopped": _("stopped"),
        "failed": _("failed"),
        "killed": _("killed"),
        "new": _("not begun"),
        "rejected": _("rejected"),
        "kept": _("kept"),
    }.get(word, word)


def run_word(state: str, told: Counters) -> str:
    """A run's state as a stable word: "nothing" when it came to its end and kept no row, "open" when only its failed
    rows were run and others are left.
    """
    if state != "done":
        return state
    return "open" if told.waiting else "done" if told.kept else "nothing"


def ended_words(event: BatchFinished) -> tuple[str, bool]:
    """What a chat says of a run's end, and whether it went well."""
    told = counters(event.counts, 0)
    words = _("Batch {name}: {state}").format(name=event.name, state=state_word(run_word(event.state, told)))
    words += f", {counts_words(told)}" if told.total else ""
    words += f" — {event.reason}" if event.reason else ""
    good = event.state == "done" and bool(told.kept) and not told.failed and not told.invalid
    return f"{words} · /batch show {event.name}", good
