"""Filters a person chooses: each alone, in a run, over a resume, and previewed on a finished run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.duplicates import NearDuplicates, sketch_of
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.quality import Quality
from hermes_engine.batch.quality_preview import preview
from hermes_engine.errors import UsageError
from hermes_engine.messages import Message
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, adds_up, dataset, play, read_rows, thinks, uses

SPANISH = "He creado el archivo y la suma de los números pares es ciento diez."
ENGLISH = "I made the file, and the sum of the even numbers in it is one hundred and ten."


def record(*said: str, prompt: str = "p", key: str = "k-0", errors: int = 0, completed: bool = True) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"from": "human", "value": prompt}]
    turns += [{"from": "gpt", "value": text, "tool_calls": []} for text in said]
    return {
        "prompt_index": 0,
        "conversations": turns,
        "completed": completed,
        "stop_reason": "done" if completed else "max_turns",
        "tool_error_counts": {"terminal": errors, "read_file": 0},
        "sample": 0,
        "metadata": {"row_id": key},
    }


@pytest.mark.parametrize(
    ("wanted", "row", "detail"),
    [
        ("finished", record("a"), ""),
        ("finished", record("a", completed=False), "ended by max_turns"),
        ("no_failed_tools", record("a"), ""),
        ("no_failed_tools", record("a", errors=2), "terminal failed 2 times"),
        ("no_failed_tools", record("a", errors=1), "terminal failed once"),
        ("min_turns:2", record("a", "b"), ""),
        ("min_turns:3", record("a", "b"), "2 turns, fewer than 3"),
        ("min_turns:2", record("a"), "1 turn, fewer than 2"),
        ("max_turns:2", record("a", "b"), ""),
        ("max_turns:1", record("a", "b"), "2 turns, more than 1"),
        ("min_chars:4", record("añ", "b"), ""),
        ("min_chars:5", record("añ", "b"), "4 characters, fewer than 5"),
        ("max_chars:4", record("añ", "b"), ""),
        ("max_chars:3", record("añ", "b"), "4 characters, more than 3"),
    ],
)
def test_each_filter_says_what_it_drops_and_why(wanted: str, row: dict[str, Any], detail: str) -> None:
    name = wanted.partition(":")[0]
    assert Quality([wanted]).against(row) == ((name, detail) if detail else None)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("tidy", "unknown filter 'tidy'; valid: finished, language"),
        ("finished:yes", "finished takes no value"),
        ("min_turns", "needs a whole number"),
        ("max_chars:-1", "needs a whole number"),
        ("near_duplicate:0", "needs a share above 0"),
        ("near_duplicate:nan", "needs a share above 0"),
        ("near_duplicate:much", "needs a share above 0"),
        ("language:Spanish", "language:Spanish: 'Spanish' is no code of a language it knows"),
        ("language:es,zz", "'zz' is no code of a language"),
        ("language", "'' is no code of a language"),
    ],
)
def test_a_wrong_filter_is_refused(wanted: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Quality(["finished", wanted])


def test_the_language_of_the_models_words() -> None:
    pytest.importorskip("gcld3", reason="cld3-py is not installed: make test does it")
    thought = "<think>\nThe user wants the sum of the even numbers in this file.\n</think>\n"
    code = "```python\n# the sum of all the even numbers of the file\nprint(sum(evens))\n```"
    spanish = Quality(["language:es"])
    assert spanish.against(record(f"{thought}{SPANISH}\n{code}")) is None
    assert spanish.against(record(ENGLISH)) == ("language", "it is in en")
    assert Quality(["language:es, en"]).against(record(ENGLISH)) is None
    hebrew = record("יצרתי את הקובץ, וסכום המספרים הזוגיים שבו הוא מאה ועשר. שלום וברכה לכולם.")
    assert Quality(["language:he"]).against(hebrew) is None
    assert Quality(["language:es"]).against(hebrew) == ("language", "it is in iw")
    assert spanish.against(record("ok")) is None, "what cannot be told is kept"


def words(seed: int, number: int) -> list[str]:
    chance = random.Random(seed)
    return [f"word{chance.randrange(10**6)}" for _ in range(number)]


def test_near_duplicates_are_found_and_others_are_not() -> None:
    base = words(1, 600)
    changed = [*base[:590], *words(2, 10)]
    half = [*base[:300], *words(3, 300)]
    seen = NearDuplicates(0.9)
    assert seen.meet(record(" ".join(base), key="a-0")) == ""
    assert seen.meet(record(" ".join(half), key="b-0")) == ""
    found = seen.meet(record(" ".join(changed), key="c-0"))
    assert found.endswith("of it is in row 0")
    assert float(found.split()[0]) == pytest.approx(588 / 612, abs=0.06)
    assert seen.meet(record("  ".join(base).upper(), key="d-0")) == "1.00 of it is in row 0"
    assert seen.meet(record(" ".join(base), key="a-0")) == "", "another sample of the same prompt"
    assert NearDuplicates(0.3).meet(record(" ".join(base))) == ""


@pytest.mark.parametrize("text", ["", "one", "two words", "没有空格的文字", "🙂🙂"])
def test_the_shortest_texts_have_a_sketch(text: str) -> None:
    seen = NearDuplicates(1.0)
    assert seen.meet(record(text, key="a-0")) == ""
    assert seen.meet(record(text, key="b-0")) == "1.00 of it is in row 0"


def test_sketches_are_the_same_everywhere() -> None:
    """A preview on one machine promises what a run on another does."""
    assert sum(sketch_of("the quick brown fox jumps over the lazy dog")) == 275161250508


def test_the_estimate_is_near_the_truth() -> None:
    for share in (0.5, 0.8, 0.9):
        kept = round(1000 * 2 * share / (1 + share))
        base = words(7, 1002)
        other = [*base[: kept + 2], *words(8, 1000 - kept)]
        alike = sum(map(int.__eq__, sketch_of(" ".join(base)), sketch_of(" ".join(other)))) / 128
        assert alike == pytest.approx(share, abs=0.12), share


def long_answer(prompt: str) -> Played:
    return thinks(" ".join(words(len(prompt), 100)))


def test_filters_of_a_run_reject_and_are_counted(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "half", "dull"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        if prompt == "half":
            return Played([Message("assistant", "half", reasoning="hm")], "max_turns")
        if prompt == "dull":
            return thinks(thought="")
        return long_answer("same") if prompt in "ab" else uses()

    ran = play(tmp_path, player, filter=("near_duplicate:0.8", "finished"), num_workers=1)
    adds_up(ran)
    assert ran.json("statistics.json")["rejects"] == {"finished": 1, "near_duplicate": 1, "no_reasoning": 1}
    rejected = {row["conversations"][0]["value"]: row for row in ran.rows("rejected.jsonl")}
    assert rejected["half"]["reject_detail"] == "ended by max_turns"
    assert rejected["b"]["reject_detail"].endswith("of it is in row 0")
    assert rejected["b"]["invented_tools"] == {}


def test_a_resume_remembers_what_was_kept(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    play(tmp_path, lambda prompt, spec: long_answer("same"), filter=("near_duplicate",))
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    again = play(tmp_path, lambda prompt, spec: long_answer("same"), resume=True)
    adds_up(again)
    assert again.json("statistics.json")["rejects"] == {"near_duplicate": 1}
    dataset(tmp_path / "prompts.jsonl", ["c"])
    gone = play(tmp_path, lambda prompt, spec: long_answer("same"), resume=True)
    assert gone.summary.counts["kept"] == 1, "a row that is no longer in the dataset makes no duplicates"


def test_a_changed_filter_is_told(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    play(tmp_path, lambda prompt, spec: thinks())
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    ran = play(tmp_path, lambda prompt, spec: thinks(), resume=True, filter=("min_turns:1", "finished"))
    told = ran.json("run.json")["changes"][0]["what"]
    assert told == ["filter: not set until now, min_turns:1, finished from here on"]


@pytest.fixture
def finished(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["a", "two\nlines", "uses"])
    return play(tmp_path, lambda prompt, spec: uses(status="error") if prompt == "uses" else long_answer("same"))


def test_a_finished_run_is_previewed_without_being_changed(finished: Ran, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in finished.folder.iterdir()}
    wanted = ["near_duplicate:0.8", "no_failed_tools", "min_turns:2", "min_turns:3"]
    told = preview(RunFolder(finished.folder), wanted[:2], tmp_path / "kept.jsonl")
    assert (told.rows, told.kept) == (3, 1)
    [only] = read_rows(tmp_path / "kept.jsonl")
    assert only == finished.rows()[0]
    told = preview(RunFolder(finished.folder), wanted)
    assert [one.rows for one in told.dropped] == [1, 1, 2, 3]
    assert told.kept == 0
    [example] = told.dropped[0].examples
    assert (example["prompt_index"], example["prompt"]) == (1, "two lines")
    assert json.loads(json.dumps(told.as_dict()))["filters"][3]["dropped"] == 3
    assert {path.name: path.read_bytes() for path in finished.folder.iterdir()} == before


def test_rows_of_a_preview_are_those_of_a_run(finished: Ran, tmp_path: Path) -> None:
    wanted = ("near_duplicate:0.8", "no_failed_tools")
    told = preview(RunFolder(finished.folder), wanted)

    def player(prompt: str, spec: AgentSpec) -> Played:
        return uses(status="error") if prompt == "uses" else long_answer("same")

    ran = play(tmp_path, player, run_name="filtered", filter=wanted)
    assert ran.summary.counts["kept"] == told.kept
