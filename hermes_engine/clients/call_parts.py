"""Tool calls put together from the pieces of a stream, whatever a server leaves out or says twice.

A piece belongs to the call of its index; without one to the call of its id; with neither to the latest call.
It begins a new call only where it cannot belong to the one it points to. Arguments are judged when the stream
has ended. Knows nothing of text, transport or tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.clients.call_arguments import grew, json_values, settled_arguments
from hermes_engine.clients.text_repair import whole_text
from hermes_engine.messages import ToolCall

_MARKS = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)


@dataclass(slots=True)
class _Slot:
    """One call in the making."""

    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list)
    _looked_at: int = 0
    _depth: int = 0
    _quoted: bool = False
    _escaping: bool = False

    @property
    def blank(self) -> bool:
        return not any(part.strip() for part in self.parts)

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are complete JSON."""
        return self._closed() and not self.blank and json_values("".join(self.parts)) is not None

    def _closed(self) -> bool:
        """Whether no bracket and no quote is open; reads each part once, where a whole look each time would not end."""
        for part in self.parts[self._looked_at :]:
            if not part:
                continue
            mark = ""
            for mark in _MARKS.findall(part[self._escaping :]):
                if mark == '"':
                    self._quoted = not self._quoted
                elif not self._quoted:
                    self._depth += (mark in "[{") - (mark in "]}")
            self._escaping = mark == "\\"  # a backslash at the very end: what it escapes comes next
        self._looked_at = len(self.parts)
        return self._depth == 0 and not self._quoted


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece as the server sent it; "" and None for what it left out."""

    index: int | None
    id: str
    name: str
    arguments: str

    def begins_anew(self, slot: _Slot) -> bool:
        """Whether this piece, which points to `slot`, is nevertheless the start of another call."""
        if not self.name or not slot.name:
            return False
        if self.id and slot.id:
            if self.id != slot.id:
                return slot.whole or (slot.blank and self.name != slot.name)
            return self.index is None and self._says_other(slot)
        if self.index is not None:
            return slot.whole if self.name != slot.name else not (self.id or slot.id) and self._says_unlike(slot)
        if self.name == slot.name:
            return bool(self.arguments.strip()) and slot.whole
        return slot.whole or (slot.blank and json_values(self.arguments) is not None)

    def _says_other(self, slot: _Slot) -> bool:
        """The same id again: another call when both are whole and differ, else a repetition or a continuation."""
        said, before = self._both(slot)
        if not said or not before:
            return False
        return self.name != slot.name or (said != before and before[-1] != {})

    def _says_unlike(self, slot: _Slot) -> bool:
        """No id at all, one index for every call: another one when both are whole and the later is no longer copy."""
        said, before = self._both(slot)
        if not said or not before:
            return False
        return len(said) == 1 and before[-1] != {} and not grew(before[-1], said[0])

    def _both(self, slot: _Slot) -> tuple[list[Any] | None, list[Any] | None]:
        """The values this piece holds, and those of the call so far where that matters: it is long."""
        said = json_values(self.arguments)
        return said, json_values("".join(slot.parts)) if said and slot.whole else None


class CallParts:
    """Collects pieces of `tool_calls`, and of the older `function_call`."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self.size = 0
        """Characters kept so far, and a few more for each call."""

    def __bool__(self) -> bool:
        return bool(self._slots)

    def feed(self, pieces: Any, *, whole: bool = False) -> None:
        """Takes what a delta holds, a list of pieces or one; with `whole` each is a call of its own."""
        touched: list[_Slot] = []
        for raw in pieces if isinstance(pieces, list) else [pieces]:
            if not isinstance(raw, dict):
                continue
            piece = _read(raw)
            slot = self._new() if whole else self._slot(piece, touched)
            touched.append(slot)
            if piece.id and not slot.id:
                slot.id = piece.id
                self._by_id.setdefault(piece.id, slot)
            slot.name = _joined_name(slot.name, piece.name)
            self.size += len(piece.name) + len(piece.arguments)
            if piece.arguments:
                slot.parts.append(piece.arguments)

    def calls(self, *, cut_off: bool = False) -> tuple[ToolCall, ...]:
        """The finished calls in order, ids as they came (maybe empty or doubled).

        Args:
            cut_off: the model was stopped midway: calls without whole arguments are left out.
        """
        return tuple(
            ToolCall(whole_text(slot.id), whole_text(slot.name).strip(), settled_arguments(slot.parts))
            for slot in self._slots
            if slot.name.strip() and not (cut_off and not slot.whole)
        )

    def _slot(self, piece: _Piece, touched: Iterable[_Slot]) -> _Slot:
        if piece.index is not None:
            slot = self._by_index.get(piece.index)
            if slot is None and self._slots and not piece.id and not piece.name:
                slot = self._slots[-1]
            if slot is None or piece.begins_anew(slot):
                slot = self._new()
            self._by_index[piece.index] = slot
            return slot
        if piece.id in self._by_id:
            slot = self._by_id[piece.id]
        elif self._slots and not (piece.id and piece.name):
            slot = self._slots[-1]
        else:
            return self._new()
        doubled = bool(piece.name) and any(slot is other for other in touched)
        return self._new() if doubled or piece.begins_anew(slot) else slot

    def _new(self) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        self.size += 100
        return slot


def _read(raw: Mapping[str, Any]) -> _Piece:
    function = raw.get("function")
    source: Mapping[str, Any] = function if isinstance(function, dict) else raw
    name, arguments = source.get("name"), source.get("arguments", source.get("parameters"))
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    key = raw.get("id")
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    return _Piece(
        _index(raw.get("index")),
        key if isinstance(key, str) else "",
        name if isinstance(name, str) else "",
        arguments or "",
    )


def _index(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _joined_name(so_far: str, piece: str) -> str:
    """A name that comes in parts, or whole again in each piece, or longer each time."""
    if not piece or piece == so_far:
        return so_far
    return piece if piece.startswith(so_far) else so_far + piece
