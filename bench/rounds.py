"""Interleaved rounds: each contender once a round, so that a slow minute of the machine falls on all alike.

Ratios are taken within a round and their median is told. Knows nothing of what is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.figures import median


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the contenders cost, round by round: name → values in order of the rounds."""

    values: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """The middle value of one contender."""
        return median(self.values[name])

    def ratios(self, name: str, floor: str) -> list[float]:
        """One contender against another, within each round."""
        return [value / base for value, base in zip(self.values[name], self.values[floor], strict=True)]

    def ratio(self, name: str, floor: str) -> float:
        """The middle one of `ratios`."""
        return median(self.ratios(name, floor))


def interleaved(contenders: Mapping[str, Callable[[], float]], rounds: int, title: str) -> Rounds:
    """Runs every contender `rounds` times, A B C A B C …

    Args:
        contenders: name → one measurement.
        rounds: how many.
        title: shown on stderr while it runs.
    """
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, measure in contenders.items():
            say(f"{title}: {name}, round {number + 1} of {rounds}")
            values[name].append(measure())
    return Rounds(values)


def say(text: str) -> None:
    """A line of progress on stderr."""
    print(text, file=sys.stderr, flush=True)
