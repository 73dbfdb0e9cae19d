"""Three rewards to begin with: `hermes batch export RUN --format atropos --reward examples.rewards:exact_answer`.

A reward takes a record of `trajectories.jsonl` and gives a finite number. What a row of the dataset held besides its
prompt is JSON text in `metadata.extra`: the expected answer, a test to run, a schema.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

TEST_SECONDS = 60
_THOUGHT = re.compile(r"<think>.*?</think>\s*", re.DOTALL)
_FENCE = re.compile(r"```[\w+-]*\n(.*?)```", re.DOTALL)


def exact_answer(record: dict[str, Any]) -> float:
    """1 when the last line of the answer is the row's `answer`, or is it behind "Answer:"; else 0.

    Case, spaces, a full stop at the end, thousands commas and mark-up around it do not count.
    """
    wanted = _plain(str(_extra(record)["answer"]))
    lines = [line for line in answer_of(record).splitlines() if line.strip()]
    said = _plain(lines[-1]) if lines else ""
    return float(wanted in (said, said.rpartition("answer:")[2].strip()))


def tests_pass(record: dict[str, Any]) -> float:
    """1 when the row's `test` command ends with 0 over the code of the answer, else 0.

    The last fenced block of the answer is written to the row's `file` (answer.py without one) in a fresh folder, where
    the command runs for at most a minute. It is code of a model: score such rows in a container of your own.
    """
    extra = _extra(record)
    blocks = _FENCE.findall(answer_of(record))
    if not blocks:
        return 0.0
    with tempfile.TemporaryDirectory(prefix="reward-") as folder:
        target = Path(folder) / Path(str(extra.get("file", "answer.py"))).name
        target.write_text(blocks[-1], "utf-8")
        command = ["timeout", "--kill-after=1", str(TEST_SECONDS), "sh", "-c", str(extra["test"])]
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    return float(done.returncode == 0)


def json_schema(record: dict[str, Any]) -> float:
    """1 when the answer, or its last fenced block, is JSON that the row's `schema` allows; 0.2 when it is only JSON."""
    from jsonschema.validators import validator_for

    schema = _extra(record)["schema"]
    validator = validator_for(schema)
    validator.check_schema(schema)
    text = answer_of(record)
    try:
        value = json.loads([text, *_FENCE.findall(text)][-1])
    except ValueError:
        return 0.0
    return 1.0 if validator(schema).is_valid(value) else 0.2


def answer_of(record: dict[str, Any]) -> str:
    """The words of the last turn, without its thought; "" when the row ended in a tool's result."""
    last = record["conversations"][-1]
    return _THOUGHT.sub("", last["value"]).strip() if last["from"] == "gpt" else ""


def _extra(record: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = json.loads(record["metadata"]["extra"])
    return extra


def _plain(text: str) -> str:
    bare = re.sub(r"(?<=\d),(?=\d{3})|[*_`$]|\\boxed", "", text)
    return " ".join(bare.strip().strip("{}").rstrip(".").lower().split())
