"""Counts a run from its files alone and compares with what the run says of itself.

`python -I bench/recount.py RUN_FOLDER DATASET` reads the dataset, `batch_N.jsonl`, `trajectories.jsonl`,
`rejected.jsonl` and `failed.jsonl`, prints what it counted as JSON, names every difference to `statistics.json` and
`checkpoint.json`, and ends with 1 when there is one. It shares no code with the program, on purpose: what both get
wrong by the same function nobody would see. Clock times are not in the files, so it says nothing of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Key = tuple[int, int]

_BATCH = re.compile(r"batch_(\d+)\.jsonl")


class Recount:
    """The rows of a run by what became of them, and what does not add up.

    Args:
        folder: of the run.
        dataset: its prompts.
    """

    def __init__(self, folder: Path, dataset: Path) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.prompts, self.invalid = self._dataset(dataset)
        self.kept: dict[Key, Record] = {}
        self.rejected: dict[Key, Record] = {}
        self.failed: dict[Key, Record] = {}
        for number, path in self._batches():
            for record in self._rows(path, self.kept):
                if record["metadata"]["batch_num"] != number:
                    self.wrong.append(f"{path.name}: a row of batch {record['metadata']['batch_num']}")
        for name, into in (("rejected.jsonl", self.rejected), ("failed.jsonl", self.failed)):
            for _ in self._rows(folder / name, into):
                pass
        self._check_merged()

    def _dataset(self, path: Path) -> tuple[dict[int, str], int]:
        prompts, invalid = {}, 0
        for number, line in enumerate(path.read_bytes().split(b"\n")):
            if not line.strip():
                continue
            try:
                prompt = json.loads(line.decode("utf-8"))["prompt"]
                prompts[number] = prompt.strip() and prompt
            except (ValueError, LookupError, TypeError, AttributeError):
                prompts[number] = ""
            if not prompts[number]:
                invalid += 1
                del prompts[number]
        return prompts, invalid

    def _batches(self) -> list[tuple[int, Path]]:
        found = ((_BATCH.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted((int(match[1]), path) for match, path in found if match)

    def _lines(self, path: Path) -> Iterator[Record]:
        data = path.read_bytes() if path.exists() else b""
        if data and not data.endswith(b"\n"):
            self.wrong.append(f"{path.name} ends within a line")
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                self.wrong.append(f"{path.name}:{number} is no JSON: {error}")

    def _rows(self, path: Path, into: dict[Key, Record]) -> Iterator[Record]:
        """Takes in the rows of a file, each of which must be nowhere else and what the dataset asks."""
        for record in self._lines(path):
            key = (record["prompt_index"], record["sample"])
            if any(key in known for known in (self.kept, self.rejected, self.failed)):
                self.wrong.append(f"{path.name}: row {key} stands twice")
                continue
            first = record["conversations"][0]
            if first["from"] != "human" or first["value"] != self.prompts.get(key[0]):
                self.wrong.append(f"{path.name}: row {key} does not begin with its prompt")
            into[key] = record
            yield record

    def _check_merged(self) -> None:
        """`trajectories.jsonl` holds the kept rows and nothing else, in order, with the same words."""
        merged = list(self._lines(self.folder / "trajectories.jsonl"))
        keys = [(record["prompt_index"], record["sample"]) for record in merged]
        if keys != sorted(self.kept):
            lost, more = set(self.kept) - set(keys), set(keys) - set(self.kept)
            self.wrong.append(
                f"trajectories.jsonl: {len(lost)} rows lost, {len(more)} that no batch has, or out of order"
            )
        shapes = {tuple(record["tool_stats"]) for record in merged}
        if len(shapes) > 1:
            self.wrong.append(f"trajectories.jsonl: counters for {len(shapes)} different sets of tools")
        for key, record in zip(keys, merged, strict=True):
            source = self.kept.get(key, {})
            changed = [name for name in record if "tool_" not in name and record[name] != source.get(name)]
            if changed:
                self.wrong.append(f"trajectories.jsonl: row {key} is not what its batch says: {changed}")

    def counted(self) -> dict[str, Any]:
        """Everything that can be counted, in the shape of `statistics.json`."""
        kept, rejected, failed = (list(rows.values()) for rows in (self.kept, self.rejected, self.failed))
        judged, everything = kept + rejected, kept + rejected + failed
        total = len(self.prompts) + self.invalid
        rows = {"total": total, "kept": len(kept), "rejected": len(rejected), "failed": len(failed)}
        turns = [turn for record in judged for turn in record["conversations"] if turn["from"] == "gpt"]
        thinking = sum(turn["value"].startswith("<think>") for turn in turns)
        return {
            "rows": {**rows, "invalid": self.invalid, "pending": total - len(everything) - self.invalid},
            "removed": 0,
            "completed": sum(record["completed"] for record in kept),
            "tools": self._tools(kept),
            "invented_tools": _sum(record["invented_tools"] for record in rejected),
            "reasoning": {
                "turns": len(turns),
                "with_reasoning": thinking,
                "without_reasoning": len(turns) - thinking,
                "coverage": round(thinking / len(turns), 4) if turns else None,
            },
            "stop_reasons": dict(Counter(record["stop_reason"] for record in kept)),
            "models": dict(Counter(record["metadata"]["model"] for record in kept)),
            "rejects": dict(Counter(record["reject_reason"] for record in rejected)),
            "failures": dict(Counter(record["error_kind"] for record in failed)),
            "toolset_draws": dict(Counter(name for record in everything for name in record["toolsets_used"])),
            "toolset_combinations": dict(Counter("+".join(record["toolsets_used"]) or "none" for record in everything)),
            "api_calls": sum(record["api_calls"] for record in everything),
            "retries": sum(record["retries"] for record in everything),
            "usage": _usage(everything),
        }

    def _tools(self, kept: list[Record]) -> dict[str, Any]:
        """Calls by tool; how many there were comes from the conversations, how they ended from the counters."""
        sums: dict[str, list[int]] = {}
        for record in kept:
            stats = record["tool_stats"]
            called = Counter(call["name"] for turn in record["conversations"] for call in turn.get("tool_calls", ()))
            answers = sum(turn["from"] == "tool" for turn in record["conversations"])
            counted = {name: item["count"] for name, item in stats.items() if item["count"]}
            if counted != called or answers != called.total():
                self.wrong.append(f"row {record['prompt_index']}: {called} calls, {answers} results, counted {counted}")
            for name, item in stats.items():
                if item["success"] + item["failure"] != item["count"]:
                    self.wrong.append(f"row {record['prompt_index']}: {name} {item} does not add up")
                if record["tool_error_counts"][name] != item["failure"]:
                    self.wrong.append(f"row {record['prompt_index']}: {name} counts its failures twice")
                each = sums.setdefault(name, [0, 0, 0])
                each[:] = each[0] + called[name], each[1] + item["success"], each[2] + item["failure"]
        return {
            name: {
                "count": count,
                "success": good,
                "failure": bad,
                "success_rate": round(good / count, 4) if count else None,
                "failure_rate": round(bad / count, 4) if count else None,
            }
            for name, (count, good, bad) in sums.items()
        }


def _sum(counts: Iterator[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _usage(records: list[Record]) -> dict[str, Any]:
    usages = [record["usage"] for record in records]
    sums = {name: sum(u[name] for u in usages) for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens")}
    return {
        **sums,
        "total_tokens": sums["prompt_tokens"] + sums["completion_tokens"],
        "tokens_known": all(usage["tokens_known"] for usage in usages),
        "cost_usd": round(sum(usage["cost_usd"] for usage in usages), 8),
        "cost_known": all(usage["cost_known"] for usage in usages),
    }


def differences(counted: Any, told: Any, where: str) -> Iterator[str]:
    """Each place where what was told is not what was counted."""
    if isinstance(counted, dict) and isinstance(told, dict):
        for name in dict.fromkeys((*counted, *told)):
            if name != "rejected_rows_included":
                yield from differences(counted.get(name), told.get(name), f"{where}.{name}")
    elif counted != told:
        yield f"{where}: counted {counted!r}, told {told!r}"


def main(folder: Path, dataset: Path) -> int:
    """Counts, prints and compares; 1 when something does not agree."""
    recount = Recount(folder, dataset)
    counted = recount.counted()
    statistics = json.loads((folder / "statistics.json").read_text("utf-8"))
    checkpoint = json.loads((folder / "checkpoint.json").read_text("utf-8"))
    wrong = list(recount.wrong)
    for name, value in counted.items():
        wrong += differences(value, statistics.get(name), f"statistics.{name}")
    wrong += differences(counted["rows"], checkpoint.get("rows"), "checkpoint.rows")
    if statistics["spent"]["total_tokens"] < counted["usage"]["total_tokens"]:
        wrong.append(f"statistics.spent: less than the rows used ({statistics['spent']})")
    if len(statistics["invalid_lines"]) != min(100, counted["rows"]["invalid"]):
        wrong.append(f"statistics.invalid_lines: {len(statistics['invalid_lines'])}")
    print(json.dumps({"counted": counted, "differences": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
