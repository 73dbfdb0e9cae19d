"""Server-sent events from raw bytes, however they are cut into packets. Knows nothing of what the events say.

Only LF, CRLF and CR end a line; U+2028, U+2029 and U+0085 are text. Lines are split before they are decoded,
so a character cut in two comes out whole.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT_BYTES = 32 * 1024 * 1024
_MARK = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: `name` is "" unless an `event:` line gave one; `data` lines are joined by LF."""

    data: str
    name: str = ""


class EventTooLarge(ValueError):
    """An event without an end grew past `MAX_EVENT_BYTES`."""


class EventReader:
    """Takes bytes as they come, gives the events they complete."""

    __slots__ = ("_after_cr", "_buffer", "_data", "_name", "_size", "_started")

    def __init__(self) -> None:
        self._buffer: list[bytes] = []  # a long line comes in many packets, which are joined once
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""
        self._after_cr = False
        self._started = False

    def feed(self, packet: bytes) -> list[SseEvent]:
        """The events that end within this packet. Comments and unknown fields give nothing.

        Raises:
            EventTooLarge: an event without an end has grown past any use.
        """
        if self._after_cr or b"\r" in packet:
            packet = self._plain_ends(packet)
        self._size += len(packet)
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of the stream is longer than {MAX_EVENT_BYTES} bytes")
        if self._started and b"\n" not in packet:
            self._buffer.append(packet)
            return []
        text = b"".join((*self._buffer, packet)) if self._buffer else packet
        if not self._started:
            if len(text) < len(_MARK) and _MARK.startswith(text):
                self._buffer = [text]
                return []
            self._started = True
            text = text.removeprefix(_MARK)
        *lines, rest = text.split(b"\n")
        self._buffer = [rest] if rest else []
        events = self._events(lines)
        if events or not self._data:
            self._size = len(rest)
        return events

    def end(self) -> list[SseEvent]:
        """What stands unfinished at the end of the stream: many servers leave the last blank line out."""
        line = b"".join(self._buffer)
        self._buffer = []
        return self._events([line, b""])

    def _plain_ends(self, packet: bytes) -> bytes:
        """Line ends as LF. A CR at the end of one packet and an LF at the start of the next are one end."""
        if not packet:
            return packet
        if self._after_cr and packet.startswith(b"\n"):
            packet = packet[1:]
            self._after_cr = False
            if not packet:
                return packet
        self._after_cr = packet.endswith(b"\r")
        return packet.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line:
                self._field(line)
            elif data:
                whole = data[0] if len(data) == 1 else b"\n".join(data)
                name = self._name.decode("utf-8", "replace") if self._name else ""
                events.append(SseEvent(whole.decode("utf-8", "replace"), name))
                data.clear()
                self._name = b""
            else:
                self._name = b""
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ")
        elif name == b"data":
            self._data.append(b"")
