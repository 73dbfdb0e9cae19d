"""Finds texts that are nearly one met before: MinHash over runs of three words, looked up by bands.

A text is a set of shingles (three words in a row; a character of a script without spaces counts as a word). Its
sketch holds the smallest hash of each of 128 classes of shingles, an empty class borrowing from the next. The share
of equal entries of two sketches estimates what share of all their shingles they have in common (Jaccard), to about
±0.05. Texts are compared only when one of 32 bands of four entries is equal, which for a share of 0.7 fails in one of
5,000 cases. Memory: about 7 KB a text, most of it for the bands. Pure.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterable

from hermes_engine.batch.job import Record

CLASSES = 128
BAND = 4
WORDS = 3
_WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯]|\w+")
_MASK = (1 << 32) - 1


class NearDuplicates:
    """The texts met so far.

    Args:
        threshold: share of common shingles from which two texts count as nearly one, above 0 to 1.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._sketches: list[tuple[str, str, array[int]]] = []
        self._bands: dict[int, list[int]] = {}

    def meet(self, record: Record) -> str:
        """What an earlier row has in common with this one, in words; "" takes the row in, as one of its own.

        Other samples of the same prompt are no duplicates: they are there to be compared.
        """
        sketch = sketch_of(words_of(record))
        prompt = str(record["metadata"]["row_id"])
        bands = [hash((start, *sketch[start : start + BAND])) for start in range(0, CLASSES, BAND)]
        candidates = dict.fromkeys(number for band in bands for number in self._bands.get(band, ()))
        for number in candidates:
            other, told, known = self._sketches[number]
            if other == prompt:
                continue
            alike = sum(map(int.__eq__, sketch, known)) / CLASSES
            if alike >= self.threshold:
                return f"{alike:.2f} of it is in {told}"
        for band in bands:
            self._bands.setdefault(band, []).append(len(self._sketches))
        self._sketches.append((prompt, f"row {record['prompt_index']}", sketch))
        return ""


def words_of(record: Record) -> str:
    """What the person and the model said, and the calls; results of tools are not the model's."""
    told: list[str] = []
    for turn in record["conversations"]:
        if turn["from"] != "tool":
            told.append(turn["value"])
            told.extend(f"{call['name']} {call['arguments']}" for call in turn.get("tool_calls", ()))
    return "\n".join(told)


def sketch_of(text: str) -> array[int]:
    """The sketch of a text, the same on every machine."""
    words = _WORD.findall(text.lower())
    shingles = {" ".join(words[place : place + WORDS]) for place in range(max(1, len(words) - WORDS + 1))}
    smallest = [-1] * CLASSES
    for value in _hashes(shingles):
        place, rest = value % CLASSES, value // CLASSES & _MASK
        if smallest[place] < 0 or rest < smallest[place]:
            smallest[place] = rest
    return array("I", _filled(smallest))


def _hashes(shingles: Iterable[str]) -> Iterable[int]:
    for shingle in shingles:
        yield int.from_bytes(hashlib.blake2b(shingle.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _filled(smallest: list[int]) -> list[int]:
    """An empty class takes the entry of the next one that is not, marked by how far away it was."""
    filled = list(smallest)
    for place in range(CLASSES):
        steps = 0
        while smallest[(place + steps) % CLASSES] < 0:
            steps += 1
        filled[place] = (smallest[(place + steps) % CLASSES] + steps * 0x9E3779B1) & _MASK
    return filled
