"""The recorded form of one run's events: a JSON line each, neighbouring deltas joined, secrets taken out."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Iterator

from hermes_engine.events import Event, TextDelta, ThoughtDelta, to_json
from hermes_engine.redaction import Redactor, StreamRedactor

Delta = TextDelta | ThoughtDelta


class RunStream:
    """Turns a run's events into lines. What of a delta may be the beginning of a secret waits for the next batch."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._open: StreamRedactor | None = None
        self._held: Delta | None = None

    def fork(self) -> RunStream:
        """A copy that goes on by itself: this one stays as it is, to start again from."""
        other = RunStream(self._redactor)
        other._open, other._held = copy.copy(self._open), self._held
        return other

    def lines(self, events: Iterable[Event]) -> list[str]:
        """Lines of the next events, in order."""
        out: list[str] = []
        for event in _joined(events):
            if not isinstance(event, Delta):
                out += self._released()
                out.append(self._line(event))
                continue
            if self._held is not None and type(self._held) is not type(event):
                out += self._released()
            if self._open is None:
                self._open = StreamRedactor(self._redactor)
            self._held = event
            text = self._open.feed(event.text)
            if text:
                out.append(self._line(dataclasses.replace(event, text=text)))
        return out

    def _released(self) -> Iterator[str]:
        """What was held back, now that the text it belongs to is at its end."""
        if self._open is not None and self._held is not None:
            rest = self._open.end()
            if rest:
                yield self._line(dataclasses.replace(self._held, text=rest))
        self._open = self._held = None

    def _line(self, event: Event) -> str:
        return json.dumps(self._redactor.value(to_json(event)), separators=(",", ":"), skipkeys=True, default=str)


def _joined(events: Iterable[Event]) -> Iterator[Event]:
    """The events with neighbouring deltas of one kind made one: the last one's number, the first one's time."""
    pieces: list[str] = []
    first: Delta | None = None
    last: Delta | None = None
    for event in events:
        if isinstance(event, Delta) and (last is None or type(last) is type(event)):
            first = first or event
            last = event
            pieces.append(event.text)
            continue
        if first is not None and last is not None:
            yield dataclasses.replace(last, text="".join(pieces), time=first.time)
            pieces, first, last = [], None, None
        if isinstance(event, Delta):
            first = last = event
            pieces = [event.text]
        else:
            yield event
    if first is not None and last is not None:
        yield dataclasses.replace(last, text="".join(pieces), time=first.time)
