"""Words for lists: sessions, durations, counts, money, files to complete. Knows no front end; may read the disk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.messages import Usage
from hermes_engine.paths import expanded
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import Completion
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow
    from hermes_engine.store.agents import AgentRecord
    from hermes_engine.store.sessions import SessionRow, SessionStore

QUIET_SECONDS = 90.0
"""An agent that says nothing for longer is called quiet."""

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "m"), (1.0, "s"))


def span(seconds: float) -> str:
    """A duration in at most two units: `48s`, `4m02`, `2h05`, `3d`."""
    total = max(0, int(seconds))
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m{total % 60:02}"
    if total < 86400:
        return f"{total // 3600}h{total % 3600 // 60:02}"
    return f"{total // 86400}d"


def ago(when: float, now: float | None = None) -> str:
    """How long ago a moment was (seconds since the epoch), in its largest unit."""
    seconds = max(0.0, (time.time() if now is None else now) - when)
    for size, unit in _UNITS:
        if seconds >= size:
            return _("{n}{unit} ago").format(n=int(seconds // size), unit=unit)
    return _("now")


def thousands(count: int) -> str:
    """A count short enough for a line: 950, 12.3k, 4.1M."""
    if count < 1000:
        return str(count)
    if count < 100_000:
        return f"{count / 1000:.1f}k"
    return f"{count // 1000}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def money(used: Usage) -> str:
    """What it cost, or that this is unknown."""
    if not used.cost_known:
        return _("unknown")
    return f"${used.cost_usd:.4f}" if 0 < used.cost_usd < 0.01 else f"${used.cost_usd:.2f}"


def gone_on_with(rows: Iterable[AgentRow | AgentRecord]) -> frozenset[str]:
    """Ids of interrupted and handed-over agents that a later one has gone on with: that one stands for both."""
    given = list(rows)
    began = {row.id: row.started or getattr(row, "created", 0.0) for row in given}
    newest: dict[str, float] = {}
    for row in given:
        newest[row.session] = max(newest.get(row.session, 0.0), began[row.id])
    return frozenset(
        row.id
        for row in given
        if row.state in ("interrupted", "handed over") and row.session and newest[row.session] > began[row.id]
    )


def agent_columns() -> tuple[str, ...]:
    """Headings of `agent_rows`."""
    return _("id"), _("agent"), _("kind"), _("state"), _("doing"), _("time"), _("tokens"), _("cost")


def agent_rows(rows: Iterable[AgentRow | AgentRecord]) -> tuple[tuple[str, ...], ...]:
    """Cells of agents and tasks, at work and ended."""
    return tuple(_agent_cells(row, time.time()) for row in rows)


def _agent_cells(row: AgentRow | AgentRecord, now: float) -> tuple[str, ...]:
    state = _(row.state.replace("_", " "))
    if getattr(row, "needs", "") or getattr(row, "request", ""):
        state = _("needs you")
    elif row.state == "running" and now - (heard := getattr(row, "heard", now)) > QUIET_SECONDS:
        state = _("quiet {span}").format(span=span(now - heard))
    took = span((row.ended or now) - row.started) if row.started else ""
    doing = one_line((row.activity if row.live else "") or row.title, 80)
    cost = money(row.usage) if row.usage.total_tokens else ""
    return row.id, row.name, row.kind, state, doing, took, thousands(row.usage.total_tokens), cost


def recent_sessions(store: SessionStore, *, limit: int) -> Sequence[SessionRow]:
    """Saved chats, last used first. Blocks for the disk."""
    return store.list(limit=limit)


def session_rows(rows: Iterable[SessionRow], *, here: str = "") -> Iterator[tuple[str, ...]]:
    """Cells of saved chats: id, title, model, messages, last used."""
    for row in rows:
        title = one_line(row.name, 60)
        mark = f" ({_('open')})" if row.id == here else ""
        yield row.id, title + mark, row.model, str(row.messages), ago(row.updated)


def file_completions(typed: str, suffixes: tuple[str, ...], here: Path) -> list[Completion]:
    """Files and folders that begin as typed, seen from a folder; files only with one of the suffixes. `start` counts
    from `typed`.
    """
    path = here / expanded(typed)
    folder, beginning = (path, "") if typed.endswith("/") or not typed else (path.parent, path.name)
    head = typed[: len(typed) - len(beginning)]
    found = []
    try:
        for item in sorted(folder.iterdir()):
            hidden = item.name.startswith(".") and not beginning.startswith(".")
            if hidden or not item.name.startswith(beginning):
                continue
            if item.is_dir():
                found.append(Completion(f"{head}{item.name}/"))
            elif item.suffix in suffixes:
                found.append(Completion(f"{head}{item.name}"))
    except OSError:
        return []
    return found[:50]
