"""A tool call, or several of one kind in a row: one line that opens. Built from plain text a tool prepared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import clean, escaped, one_line
from hermes_tui.texts import _, ngettext
from hermes_tui.widgets.blocks.base import INSET, Block, indented
from hermes_tui.widgets.blocks.diff import diff_lines, diff_style
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, row_of, shorten, spread
from hermes_tui.widgets.times import seconds_short

BodyKind = Literal["text", "diff", "command", "list"]

MAX_BODY = 400
"""Lines drawn of an opened body; the rest is counted."""

_LIVE_LINES = 3
_TIME = re.compile(r"(\d+(?:\.\d+)?) s")
_VERB_WIDTH = 9
_GROUPED = frozenset({"Read", "Search", "Fetch", "List"})
"""Verbs whose calls in a row share one card."""
_SPAWNING = frozenset({"Spawn", "Spawned"})
_ROOMY = 76
"""Columns from which a card of agents says where they are to be seen."""


@dataclass(slots=True)
class CallState:
    """One call on a card; `status` is "" while it runs, then ok | error | denied | cancelled."""

    call_id: str
    title: str = ""
    summary: str = ""
    kind: BodyKind = "text"
    body: str = ""
    status: str = ""
    seconds: float = 0.0
    progress: str = ""


class ToolBlock(Block):
    """A card. `verb` names what is done; `calls` are those it stands for, mostly one; `elapsed` seconds so far."""

    def __init__(self, call_id: str, verb: str, title: str = "") -> None:
        super().__init__()
        self.verb = verb
        self.calls = [CallState(call_id, title)]
        self.frame = 0
        self.elapsed = 0.0
        self.began: float | None = None

    @property
    def running(self) -> bool:
        """Whether a call of it has no result yet."""
        return any(not call.status for call in self.calls)

    @property
    def failed(self) -> bool:
        """Whether a call of it went wrong."""
        return any(call.status not in ("", "ok") for call in self.calls)

    def may_join(self, verb: str) -> bool:
        """Whether a further call of that verb belongs on this card."""
        return verb == self.verb and verb in _GROUPED and not self.failed

    def join(self, call_id: str, title: str) -> None:
        """Adds a call."""
        self.calls.append(CallState(call_id, title))
        self.touch()

    def call(self, call_id: str) -> CallState | None:
        """The state of one call."""
        return next((call for call in self.calls if call.call_id == call_id), None)

    def progress(self, call_id: str, text: str) -> None:
        """The latest lines of a running call."""
        call = self.call(call_id)
        if call is not None and call.progress != text:
            call.progress = text
            self.touch()

    def finish(
        self,
        call_id: str,
        *,
        verb: str,
        title: str,
        summary: str,
        kind: BodyKind,
        body: str,
        status: str,
        seconds: float,
    ) -> None:
        """The call's outcome."""
        call = self.call(call_id)
        if call is None:
            return
        if len(self.calls) == 1 and verb:
            self.verb = verb
        if timed := _TIME.fullmatch(summary):
            # some tools have nothing to say but how long the work itself took, without the wait for a yes
            seconds, summary = float(timed[1]), ""
        call.title, call.summary, call.kind, call.body = title or call.title, summary, kind, body
        call.status, call.seconds, call.progress = status, seconds, ""
        self.touch()

    @property
    def dense(self) -> bool:
        return True

    @property
    def openable(self) -> bool:
        return len(self.calls) > 1 or bool(self.calls[0].body or self.calls[0].progress)

    @property
    def animated(self) -> bool:
        return self.running

    def tick(self, frame: int, now: float) -> None:
        if self.began is None:
            self.began = now
        self.frame, self.elapsed = frame, now - self.began
        self.touch()

    def rows(self, width: int, look: Look) -> list[Row]:
        rows = [self._head(width, look)]
        if not self.open:
            first = self.calls[0]
            if self.running and first.progress and len(self.calls) == 1:
                rows.extend(_lines(_tail(first.progress, _LIVE_LINES), width, look.faint))
            return rows
        for call in self.calls:
            if len(self.calls) > 1:
                title = Text(one_line(call.title), look.soft)
                rows.extend(indented(title, width, Text(" " * (INSET + 2))))
            rows.extend(_body(call, width, look))
        return rows

    def details(self, width: int, look: Look) -> list[Row]:
        """What the last call says, without an inset."""
        return _body(self.calls[-1], width, look, edge="")

    def _head(self, width: int, look: Look) -> Row:
        glyphs = look.glyphs
        left = Text(" " * INSET)
        mark = glyphs.unfolded if self.open else glyphs.folded if self.openable or not self.running else " "
        spawned = self.verb in _SPAWNING
        if spawned and not self.open:
            mark = glyphs.forked
        left.append(f"{mark} ", look.accent if self.running else look.faint)
        verb = one_line(self.verb)
        left.append(verb.ljust(_VERB_WIDTH), look.text)
        left.append(" ")
        left.append(_title(self.calls), look.soft)
        right = self._outcome(look)
        if spawned and width >= _ROOMY:
            right = Text(_("^T shows them") + "  ", look.faint).append_text(right)
        line = spread(left, right, max(8, width - 1))
        return row_of(line, INSET + 2)

    def _outcome(self, look: Look) -> Text:
        right = Text()
        last = self.calls[-1]
        summary = one_line(last.summary, 40) if len(self.calls) == 1 else ""
        if self.running:
            if self.elapsed >= 1:
                right.append(f"{seconds_short(int(self.elapsed))}  ", look.faint)
            spinner = look.glyphs.spinner
            sign = spinner[self.frame % len(spinner)] if look.motion else look.glyphs.running
            return right.append(sign, look.accent)
        if summary:
            right.append(summary, look.soft)
        seconds = sum(call.seconds for call in self.calls)
        if seconds >= 0.05:
            right.append("  " if right.plain else "").append(seconds_short(seconds), look.faint)
        sign, style = self._sign(look)
        right.append(f"  {sign}" if right.plain else sign, style)
        return right

    def _sign(self, look: Look) -> tuple[str, Style]:
        statuses = {call.status for call in self.calls}
        if "error" in statuses or "denied" in statuses:
            return look.glyphs.bad, look.bad
        if "cancelled" in statuses:
            return look.glyphs.stopped, look.faint
        return look.glyphs.good, look.good

    def estimate(self, width: int) -> int:
        if not self.open:
            return 1
        return 1 + min(MAX_BODY, sum(call.body.count("\n") + 1 for call in self.calls))

    def copy_text(self) -> str:
        parts: list[str] = []
        for call in self.calls:
            parts.append(call.title)
            if call.body and call.body != call.title:
                parts.append(call.body)
        return "\n".join(part for part in parts if part)


def _title(calls: list[CallState]) -> str:
    title = one_line(escaped(calls[0].title), 400)
    more = len(calls) - 1
    if not more:
        return title
    return f"{title}  " + ngettext("+{count} more", "+{count} more", more).format(count=more)


def _tail(text: str, lines: int) -> str:
    return "\n".join(clean(text).strip("\n").split("\n")[-lines:])


def _lines(text: str, width: int, style: Style) -> list[Row]:
    left = " " * (INSET + 2)
    texts = (shorten(Text(left + line, style, tab_size=4), width) for line in text.split("\n"))
    return [row_of(line, len(left)) for line in texts]


def _body(call: CallState, width: int, look: Look, edge: str = " " * (INSET + 2)) -> list[Row]:
    """The details of a call, by their kind, right of an edge."""
    source = clean(call.body or call.progress).strip("\n")
    if not source:
        return []
    lines = source.split("\n")
    hidden = max(0, len(lines) - MAX_BODY)
    rows: list[Row] = []
    for text in _styled(lines[:MAX_BODY], call.kind, look):
        rows.extend(indented(text, width, Text(edge)))
    if hidden:
        rows.append(row_of(Text(edge).append(f"{look.glyphs.ellipsis} {hidden:,} more lines", look.faint), len(edge)))
    return rows


def _styled(lines: list[str], kind: BodyKind, look: Look) -> Iterator[Text]:
    """The lines of a body in the styles of their kind."""
    if kind == "diff":
        for line, change in diff_lines(lines, look):
            yield Text(line, diff_style(change, look))
        return
    for number, line in enumerate(lines):
        yield Text(line, look.text if kind == "command" and number == 0 else look.soft)
