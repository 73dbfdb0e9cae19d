"""Keeps the tokens of kept rows as their server told them (`--record_tokens`), and reads them back for an export.

A line of `tokens.jsonl` is one row: for each turn of the model what it read after the tokens it shares with what came
before, what it said, and how likely each token was; null for a turn of which the server did not tell all. Written
before the row's own line, so that no kept row lacks it after a kill; of a row that ran more than once the last counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from hermes_engine.batch.files import Appender, cut_torn_end
from hermes_engine.batch.folder import RunFolder
from hermes_engine.errors import StateError
from hermes_engine.messages import Message, ReplyTokens

_HEAD = re.compile(rb'\{"row": "([^"]+)", "whole": (true|false)')


UNTOLD = (
    "the server does not tell the tokens of its replies with their log-probabilities (--record_tokens); rows without "
    "are counted"
)
HALF_TOLD = "the server does not tell all tokens of a row's requests (--record_tokens); rows without are counted"


class TokenFile:
    """The file of a run's tokens, open for adding. A torn last line of a process that was killed is cut off.

    Args:
        folder: of the run.
        kept: rows that are kept.
        tell: shows a line, with its level: once, when the server does not tell what makes a row whole.

    Raises:
        StateError: it cannot be read or written.
    """

    def __init__(self, folder: RunFolder, kept: Collection[str], tell: Callable[[str, str], None]) -> None:
        self._tell, self._told = tell, False
        if folder.tokens.exists():
            cut_torn_end(folder.tokens)
        self._whole = token_figures(folder, kept)["rows"]
        self._file = Appender(folder.tokens)

    def keep(self, row: str, conversation: Sequence[Message]) -> None:
        """Adds a kept row. Raises StateError."""
        told = [message.tokens for message in conversation if message.role == "assistant"]
        whole = _whole(told)
        turns = [None if item is None else _turn(item) for item in told]
        line = json.dumps({"row": row, "whole": whole, "turns": turns}, separators=(", ", ": "), allow_nan=False)
        self._file.append(f"{line}\n".encode())
        self._whole += whole
        if not whole and not self._told:
            self._told = True
            self._tell("warning", HALF_TOLD if any(told) else UNTOLD)

    def figures(self, kept: int) -> dict[str, int]:
        """Of so many kept rows, how many have all their tokens."""
        return {"rows": self._whole, "without": max(0, kept - self._whole)}

    def close(self) -> None:
        """Forces it to the disk and closes it. Raises StateError."""
        self._file.sync()
        self._file.close()


def _whole(told: Sequence[ReplyTokens | None]) -> bool:
    """Whether the turns make one sequence: none is without tokens, and none goes on from what is not there."""
    length = 0
    for item in told:
        if item is None or item.shared > length or not (item.shared or item.prompt):
            return False
        length = item.shared + len(item.prompt) + len(item.tokens)
    return bool(told)


def token_figures(folder: RunFolder, kept: Collection[str]) -> dict[str, int]:
    """How many of the kept rows have all their tokens in the run's file. Raises StateError."""
    whole = sum(spot.whole for row, spot in _spots(folder).items() if row in kept)
    return {"rows": whole, "without": len(kept) - whole}


def _turn(told: ReplyTokens) -> dict[str, Any]:
    return {
        "shared": told.shared,
        "prompt": list(told.prompt),
        "tokens": list(told.tokens),
        "logprobs": list(told.logprobs),
    }


class _Spot(NamedTuple):
    """Where a row's line stands."""

    offset: int
    length: int
    whole: bool


def _spots(folder: RunFolder) -> dict[str, _Spot]:
    """Each row's last line."""
    found: dict[str, _Spot] = {}
    try:
        with folder.tokens.open("rb") as stream:
            offset = 0
            for line in stream:
                head = _HEAD.match(line)
                if head and line.endswith(b"\n"):
                    found[head[1].decode()] = _Spot(offset, len(line), head[2] == b"true")
                offset += len(line)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"cannot read {folder.tokens}: {error.strerror or error}") from None
    return found


class Spoken(NamedTuple):
    """A row as its model read and said it.

    Attributes:
        tokens: of its last request, and of the last reply.
        said: for each whether the model said it, in the very context in which it stands.
        logprobs: for each how likely it was; 1.0 where it was not said.
        cut: how many tokens were said that are not there, for later requests told them otherwise.
    """

    tokens: list[int]
    said: list[bool]
    logprobs: list[float]
    cut: int


class RecordedTokens:
    """The tokens of a run's rows. Raises StateError when the file cannot be read."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.tokens
        self._spots = {row: spot for row, spot in _spots(folder).items() if spot.whole}

    def __bool__(self) -> bool:
        return bool(self._spots)

    def of(self, row: str) -> Spoken | None:
        """The row's tokens; None when not all of them were told."""
        spot = self._spots.get(row)
        if spot is None:
            return None
        try:
            with self._path.open("rb") as stream:
                stream.seek(spot.offset)
                turns = json.loads(stream.read(spot.length))["turns"]
            return _joined(turns)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _joined(turns: Sequence[dict[str, Any]]) -> Spoken | None:
    """One sequence of a row's turns; None when they do not follow one another."""
    tokens: list[int] = []
    said: list[bool] = []
    logprobs: list[float] = []
    cut = 0
    for turn in turns:
        shared, prompt, reply = turn["shared"], turn["prompt"], turn["tokens"]
        if shared > len(tokens) or len(reply) != len(turn["logprobs"]):
            return None
        cut += sum(said[shared:])
        del tokens[shared:], said[shared:], logprobs[shared:]
        tokens += [*prompt, *reply]
        said += [False] * len(prompt) + [True] * len(reply)
        logprobs += [1.0] * len(prompt) + turn["logprobs"]
    return Spoken(tokens, said, logprobs, cut)
