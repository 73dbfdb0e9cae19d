"""Scores of rows: the shipped examples, and what is taken from a function of a person's own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples import rewards
from hermes_engine.batch.export import export
from hermes_engine.batch.export.atropos import Atropos, load_tokenizer
from hermes_engine.batch.export.groups import Groups
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.rewards import NoScore, load_reward, scored
from hermes_engine.errors import UsageError
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, play, read_rows, thinks, uses
from tests.batch.test_export_forms import TOKENIZER

CODE = "Here:\n```python\ndef double(n):\n    return {body}\n```\n"


def record(said: str, **extra: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": "p"}, {"from": "gpt", "value": f"<think>\nhm\n</think>\n{said}"}]
    return {"conversations": turns, "completed": True, "metadata": {"extra": json.dumps(extra)}}


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("The sum.\nAnswer: 1,042.", 1.0),
        ("**1042**", 1.0),
        ("$\\boxed{1042}$", 1.0),
        ("1042 or 1043", 0.0),
        ("11042", 0.0),
        ("1042\nNo, 7", 0.0),
        ("", 0.0),
    ],
)
def test_exact_answer(said: str, score: float) -> None:
    assert rewards.exact_answer(record(said, answer=1042)) == score


def test_code_whose_tests_pass() -> None:
    test = {"test": "python3 -c 'from answer import double; assert double(4) == 8'"}
    assert rewards.tests_pass(record(CODE.format(body="2 * n"), **test)) == 1.0
    assert rewards.tests_pass(record(CODE.format(body="n"), **test)) == 0.0
    assert rewards.tests_pass(record("I cannot.", **test)) == 0.0
    escape = {"test": "test -f evil.py", "file": "../../evil.py"}
    assert rewards.tests_pass(record(CODE.format(body="n"), **escape)) == 1.0, "only the name counts, in the folder"


def test_json_of_a_schema() -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    assert rewards.json_schema(record('{"n": 1}', schema=schema)) == 1.0
    assert rewards.json_schema(record('Here:\n```json\n{"n": 1}\n```', schema=schema)) == 1.0
    assert rewards.json_schema(record('{"n": "1"}', schema=schema)) == 0.2
    assert rewards.json_schema(record("n is 1", schema=schema)) == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "1", [1.0]])
def test_only_finite_numbers_are_scores(value: Any) -> None:
    with pytest.raises(NoScore, match="no finite number"):
        scored(lambda record: value, {})


def test_a_reward_cannot_change_the_row() -> None:
    row = record("x")

    def spoil(record: dict[str, Any]) -> float:
        record["conversations"].clear()
        return 1

    assert scored(spoil, row) == 1.0
    assert len(row["conversations"]) == 2


def test_rewards_stand_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rewards_here.py").write_text("best = lambda record: 2\nnone = 3\n")
    (tmp_path / "broken_rewards_here.py").write_text("import no_such_module_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert scored(load_reward("my_rewards_here:best"), {}) == 2.0
    for name, why in [
        ("my_rewards_here", "is not module:function"),
        ("my_rewards_here:none", "has no function none"),
        ("my_rewards_here:other", "has no function other"),
        ("nowhere_at_all:best", "there is no module nowhere_at_all"),
        ("broken_rewards_here:best", "cannot be loaded: ModuleNotFoundError"),
    ]:
        with pytest.raises(UsageError, match=why):
            load_reward(name)


@pytest.fixture
def sampled(tmp_path: Path) -> Ran:
    """Three prompts of three samples; the second prompt's first is rejected, the third's runs out of turns."""
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    played: list[str] = []

    def player(prompt: str, spec: AgentSpec) -> Played:
        played.append(prompt)
        if played.count(prompt) > 1 or prompt == "a":
            return uses()
        return thinks(thought="") if prompt == "b" else Played(uses().messages, "max_turns")

    return play(tmp_path, player, num_generations=3, num_workers=1)


def grouped(ran: Ran, path: Path, reward: Callable[[dict[str, Any]], float] | None, told: list[str]) -> Any:
    form = Atropos(load_tokenizer(TOKENIZER))
    groups = Groups(form, reward, tell=told.append)
    done = export(RunFolder(ran.folder), form, path, groups=groups)
    return read_rows(path), done, list(groups.notes())


def test_f2_8_samples_form_groups_and_a_row_without_a_score_is_named(sampled: Ran, tmp_path: Path) -> None:
    told: list[str] = []

    def reward(record: dict[str, Any]) -> float:
        if (record["prompt_index"], record["sample"]) == (0, 2):
            raise KeyError("answer")
        score: float = record["completed"] / (1 + record["sample"])
        return score

    groups, done, notes = grouped(sampled, tmp_path / "out.jsonl", reward, told)
    assert [group["scores"] for group in groups] == [[1.0, 0.5], [0.5, 1 / 3], [0.0, 0.5, 1 / 3]]
    for group in groups:
        assert {len(group[name]) for name in ("tokens", "masks", "scores", "messages", "overrides")} == {
            len(group["scores"])
        }
    assert len({tuple(group) for group in groups}) == 1, "every group has the same fields"
    assert told == ["row 0, sample 2 has no score: KeyError: 'answer'"]
    assert done.left_out == {"no score": 1, "rejected: no_reasoning": 1}
    assert notes == ["2 groups lack a sample: it was rejected, failed, or is left out here"]


def test_without_a_reward_completed_rows_have_one(sampled: Ran, tmp_path: Path) -> None:
    groups, _, notes = grouped(sampled, tmp_path / "out.jsonl", None, [])
    assert [group["scores"] for group in groups] == [[1.0] * 3, [1.0] * 2, [0.0, 1.0, 1.0]]
    assert notes[1].startswith("2 groups have equal scores")


def test_a_killed_run_groups_what_it_has(sampled: Ran, tmp_path: Path) -> None:
    whole, _, _ = grouped(sampled, tmp_path / "whole.jsonl", None, [])
    (sampled.folder / "trajectories.jsonl").unlink()
    groups, _, _ = grouped(sampled, tmp_path / "out.jsonl", None, [])
    assert groups == whole


class Scalar:
    """A number as numpy's and torch's are."""

    def __float__(self) -> float:
        return 0.25


def _leaves(record: Any) -> float:
    raise SystemExit("no more")


@pytest.mark.parametrize(
    ("reward", "score"),
    [
        (lambda record: Scalar(), 0.25),
        (lambda record: True, 1.0),
        (lambda record: 10**400, "no finite number"),
        (lambda record: "1", "no finite number"),
        (lambda record: math.nan, "no finite number"),
        (lambda record: record["missing"], "KeyError: 'missing'"),
        (_leaves, "SystemExit: no more"),
    ],
)
def test_what_a_reward_may_give(reward: Any, score: float | str) -> None:
    if isinstance(score, float):
        assert scored(reward, record("x")) == score
    else:
        with pytest.raises(NoScore, match=score):
            scored(reward, record("x"))


def test_what_a_reward_prints_stands_not_between_the_rows(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: thinks())
    (tmp_path / "talks.py").write_text("print('loaded')\ndef score(record):\n    print('hm')\n    return 1\n")
    command = [sys.executable, "-m", "hermes_tui.cli", "batch", "export", "run", "--format", "atropos", "-o", "-"]
    flags = ["--tokenizer", str(TOKENIZER), "--reward", "talks:score"]
    done = subprocess.run([*command, *flags], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert [json.loads(line)["scores"] for line in done.stdout.splitlines()] == [[1.0], [1.0]]
    assert done.stderr.splitlines() == ["loaded", "hm", "hm", "2 rows written"]
    (tmp_path / "fails.py").write_text("def score(record):\n    return record['nosuch']\n")
    done = subprocess.run(
        [*command, *flags[:3], "fails:score"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), "a reward that fails for every row is an error"
    assert done.stderr.splitlines()[-2:] == ["0 rows written", "left out 2: no score"]
