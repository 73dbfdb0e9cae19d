"""What the readers share: where they find their work and put what they read. Runs in every environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Case = dict[str, Any]
"""What became of one export: `format`, `how` it was read, `rows` that came in, and what else is to be recorded."""

UNTRAINED = -100


@dataclass(frozen=True, slots=True)
class Task:
    """What a reader is given.

    Attributes:
        exports: folder of the exports.
        tokenizer: folder of a tokenizer.
        work: folder to write into.
    """

    exports: Path
    tokenizer: str
    work: Path


def answer(read: Callable[[Task], list[Case]]) -> None:
    """Reads by the command line, EXPORTS TOKENIZER WORK OUT, and writes the cases to OUT."""
    exports, tokenizer, work, out = sys.argv[1:]
    Path(out).write_text(json.dumps(read(Task(Path(exports), tokenizer, Path(work)))), encoding="utf-8")


def spans(tokenizer: Any, labels: list[int]) -> list[str]:
    """The texts that are trained, each up to the next that is not."""
    found: list[list[int]] = [[]]
    for label in labels:
        if label != UNTRAINED:
            found[-1].append(label)
        elif found[-1]:
            found.append([])
    return [tokenizer.decode(ids) for ids in found if ids]
