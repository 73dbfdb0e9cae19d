"""What was read against what is recorded, as cases, a table, and the words for what a consumer does not take."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.batch.support import read_rows
from tests.consumers.environments import Consumer
from tests.consumers.said import as_said

EXPECTED = Path(__file__).with_name("expected")
COLUMNS = ("consumer", "version", "export", "read as", "rows", "right", "verdict")

NOTES: Mapping[tuple[str, str, str], str] = {
    ("trl", "openai", "qwen2_5"): "this template encodes arguments that are strings again",
    ("axolotl", "sharegpt", "qwen3"): "the last turn's opening <think> is not trained",
    ("axolotl", "openai", "qwen3"): "the last turn's opening <think> is not trained",
    ("axolotl", "openai-object", "qwen3"): "the last turn's opening <think> is not trained",
    ("axolotl", "sharegpt", "chatml"): "this template knows no calls",
    ("llamafactory", "llamafactory", "qwen3 enable_thinking=False"): "thoughts are taken out, as asked",
}
"""Why a case is not right in all rows, where the case does not say it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    cells: tuple[str, ...]
    differs: bool = False


def completed(cases: Sequence[Mapping[str, Any]], exports: Path) -> list[dict[str, Any]]:
    """The cases with the rows their exports have, and how many of them were read right."""
    records = read_rows(exports / "sharegpt.jsonl")
    told = []
    for case in cases:
        path = exports / f"{case['format']}.jsonl"
        whole = exports.parent / "one" / "data" / "run" / "trajectories.jsonl"
        written = len(read_rows(whole if case["how"] == "folder of the run" else path))
        right = case.get("equal", case["rows"])
        if "read" in case:
            right = as_said(case["read"], records) if len(case["read"]) == len(records) else 0
        told.append({**case, "written": written, "right": right})
    return told


def recorded(consumer: Consumer) -> list[dict[str, Any]]:
    """What is recorded of it; nothing when nothing is."""
    path = EXPECTED / f"{consumer.key}.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return cases


def record(consumer: Consumer, cases: Sequence[Mapping[str, Any]]) -> None:
    """Makes these cases the expected ones."""
    EXPECTED.mkdir(exist_ok=True)
    text = json.dumps(list(cases), indent=1, ensure_ascii=False)
    (EXPECTED / f"{consumer.key}.json").write_text(f"{text}\n", "utf-8")


def judged(consumer: Consumer, cases: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]]) -> list[Line]:
    """A line for each case, and one for each that is recorded and did not come."""
    before = {(case["format"], case["how"]): case for case in known}
    lines = []
    for case in cases:
        same = before.pop((case["format"], case["how"]), None) == case
        lines.append(_line(consumer, case, "" if same else "DIFFERENT", differs=not same))
    return [*lines, *(_line(consumer, case, "DIFFERENT: not read", differs=True) for case in before.values())]


def missing(consumer: Consumer, reason: str, *, differs: bool = False) -> Line:
    """The line of a consumer that read nothing."""
    return Line((consumer.name, consumer.version, "", "", "", "", reason), differs)


def _line(consumer: Consumer, case: Mapping[str, Any], verdict: str, *, differs: bool) -> Line:
    why = why_not(consumer.name, case)
    rows, right = (f"{case[name]} of {case['written']}" for name in ("rows", "right"))
    cells = (consumer.name, consumer.version, case["format"], case["how"], rows, right)
    verdict = verdict or ("known" if why else "ok")
    return Line((*cells, f"{verdict}: {why}" if why else verdict), differs)


def why_not(name: str, case: Mapping[str, Any]) -> str:
    """What a person should know of a case that is not right in all rows; "" of one that is."""
    if case["right"] == case["written"]:
        return ""
    if "refused" in case:
        return f"it refuses the file ({case['refused']})"
    return str(case.get("differs") or NOTES.get((name, case["format"], case["how"]), "not what the model said"))


def table(lines: Sequence[Line]) -> str:
    """The lines under their heads."""
    rows = [COLUMNS, *(line.cells for line in lines)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]]).rstrip()
        for row in rows
    )


def difference(cases: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], most: int = 40) -> list[str]:
    """What differs, line by line."""
    before, now = (json.dumps(side, indent=1, ensure_ascii=False).splitlines() for side in (known, cases))
    found = list(difflib.unified_diff(before, now, "recorded", "read", n=1, lineterm=""))
    return [*found[:most], f"… {len(found) - most} more lines"] if len(found) > most else found
