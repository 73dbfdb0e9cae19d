"""datasets: whether `load_dataset` gives every row of each export back equal. Runs beside one version of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import load_dataset

from tests.consumers.readers.common import Case, Task, answer

LATE = 11_000_000
"""Bytes of plain rows before the others: a schema is taken from the first ten million."""


def main(task: Task) -> list[Case]:
    """Every export as it is, then with all that is not plain behind many plain rows; the run's folder at last."""
    files = sorted(task.exports.glob("*.jsonl"))
    cases = [loaded(path.stem, "file", lines_of(path), "json", data_files=str(path)) for path in files]
    for path in files:
        plain, *others = path.read_bytes().splitlines(keepends=True)
        late = task.work / path.name
        plains = LATE // len(plain)
        late.write_bytes(plain * plains + b"".join(others))
        case = loaded(path.stem, "calls after 11 MB", lines_of(late), "json", data_files=str(late))
        for name in ("rows", "equal"):
            case[name] = max(0, case[name] - plains + 1)  # one plain row, as in the file itself
        cases.append(case)
        late.unlink()
    run = task.exports.parent / "one" / "data" / "run"
    return [*cases, loaded("sharegpt", "folder of the run", lines_of(run / "trajectories.jsonl"), str(run))]


def lines_of(path: Path) -> list[Any]:
    """What the file holds."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def loaded(name: str, how: str, rows: list[Any], *args: Any, **values: Any) -> Case:
    """How many rows come back equal; none and the error's kind when it refuses."""
    case: Case = {"format": name, "how": how, "rows": len(rows)}
    try:
        got = list(load_dataset(*args, split="train", **values))
    except Exception as error:
        return {**case, "rows": 0, "equal": 0, "refused": type(error.__cause__ or error).__name__}
    if len(got) != len(rows):
        return {**case, "rows": len(got), "equal": 0}
    equal = sum(one == other for one, other in zip(got, rows, strict=True))
    if equal < len(rows) and all(
        without_nulls(one) == without_nulls(other) for one, other in zip(got, rows, strict=True)
    ):
        case["differs"] = "keys that hold nothing were added"
    return {**case, "equal": equal}


def without_nulls(value: Any) -> Any:
    """A value without the keys that hold nothing: older versions give every row the keys of all."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    answer(main)
