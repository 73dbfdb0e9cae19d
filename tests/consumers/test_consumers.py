"""What `make consumers` proved still holds for what is exported now, without the environments it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch.support import read_rows
from tests.consumers import material
from tests.consumers.environments import CONSUMERS, Consumer, set_up
from tests.consumers.readers.datasets_load import lines_of, loaded
from tests.consumers.said import as_said
from tests.consumers.verdicts import EXPECTED, completed, difference, judged, recorded, table, why_not

NAMES = (*material.EXPORTS, "atropos-pairs")
LABELS = ("trl", "axolotl", "llamafactory")
DIFFERENT_RUN = "the export differs from the one the consumers read: make consumers ARGS=--update proves it again"


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERMES_HOME", str(tmp_path_factory.mktemp("home")))
        yield material.make(tmp_path_factory.mktemp("consumers"))


@pytest.mark.parametrize("name", NAMES)
def test_exports_are_those_the_consumers_read(exports: Path, name: str) -> None:
    assert material.told(name, exports / f"{name}.jsonl") == read_rows(material.RECORDED / f"{name}.jsonl"), (
        DIFFERENT_RUN
    )


def test_no_export_holds_what_none_may_hold(exports: Path) -> None:
    for name in material.EXPORTS:
        text = (exports / f"{name}.jsonl").read_text("utf-8")
        for prompt in (material.NO_REASONING, material.REFUSED, material.ENDLESS):
            assert prompt not in text, name
    run = exports.parent / "one" / "data" / "run"
    assert [row["stop_reason"] for row in read_rows(run / "trajectories.jsonl") if not row["completed"]] == [
        "max_turns"
    ]


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: consumer.key)
def test_each_consumer_has_expectations_that_are_right_or_say_why_not(consumer: Consumer) -> None:
    cases = recorded(consumer)
    assert cases
    for case in cases:
        assert case["rows"] == case["written"] or "refused" in case, case["format"]
        assert why_not(consumer.name, case) != "not what the model said", (case["format"], case["how"])
    reads = {case["format"] for case in cases if case["right"] == case["written"]}
    promised = {
        "datasets": {"hermes-fc", "llamafactory", "atropos", "atropos-pairs"},
        "atroposlib": {"atropos", "atropos-pairs"},
        "trl": {"openai-object", "openai-list", "openai"},
        "axolotl": {"sharegpt", "hermes-fc", "openai-object"},
        "llamafactory": {"llamafactory"},
    }
    assert reads >= promised[consumer.name]
    if consumer.version in ("4.8.5", "5.2.0"):
        assert reads == set(NAMES)


@pytest.mark.parametrize("consumer", [each for each in CONSUMERS if each.name in LABELS], ids=lambda each: each.key)
def test_recorded_labels_are_what_the_model_said(exports: Path, consumer: Consumer) -> None:
    records = read_rows(exports / "sharegpt.jsonl")
    for case in recorded(consumer):
        assert as_said(case["read"], records) == case["right"], (case["format"], case["how"])


def test_labels_that_say_something_else_are_seen(exports: Path) -> None:
    records = read_rows(exports / "sharegpt.jsonl")[:3]
    whole = [
        ["<think>\nTwo and two: four.\n</think>\n\nFour.<|im_end|>\n"],
        [
            "<think>\nI look.\n</think>\n\n<tool_call>\n"
            '{"name": "terminal", "arguments": {"command": "printf \'README.md\\\\n\'"}}\n</tool_call><|im_end|>\n',
            "<think>\nOne line came.\n</think>\nOne file.<|im_end|>",
        ],
    ]
    assert as_said(whole, records[:2]) == 2
    for place, old, new in [
        (0, "Four.", "Five."),
        (0, "<think>\n", ""),
        (1, '"arguments": {', '"arguments": {"x": 1, '),
    ]:
        wrong = [list(spans) for spans in whole]
        wrong[place][0] = wrong[place][0].replace(old, new)
        assert as_said(wrong, records[:2]) == 1, new
    assert as_said([whole[0], whole[1][:1]], records[:2]) == 1


def test_a_difference_and_what_was_not_read_are_told() -> None:
    consumer = next(each for each in CONSUMERS if each.name == "trl")
    known = recorded(consumer)
    assert not any(line.differs for line in judged(consumer, known, known))
    assert difference(known, known) == []
    changed = [{**known[0], "rows": 0, "right": 0}, *known[1:-1]]
    lines = judged(consumer, changed, known)
    assert [line.differs for line in lines] == [True, *[False] * (len(known) - 2), True]
    shown = table(lines).splitlines()
    assert shown[1].endswith("DIFFERENT: not what the model said")
    assert shown[-1].endswith("DIFFERENT: not read") or "DIFFERENT: not read: " in shown[-1]
    assert '+  "rows": 0,' in difference(changed, known)


@pytest.mark.slow
def test_what_cannot_be_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "none"))
    _, reason = set_up(Consumer("trl", "1.16.0", "trl_sft"), tmp_path / "cache")
    assert reason == "No matching distribution found for trl==1.16.0"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["trl-1.16.0.log"]


def test_the_datasets_that_is_here_reads_as_recorded_of_the_newest(exports: Path, tmp_path: Path) -> None:
    newest = [each for each in CONSUMERS if each.name == "datasets"][-1]
    known = [case for case in recorded(newest) if case["how"] == "file"]
    cases = [
        loaded(path.stem, "file", lines_of(path), "json", data_files=str(path), cache_dir=str(tmp_path))
        for path in sorted(exports.glob("*.jsonl"))
    ]
    assert difference(completed(cases, exports), known) == []


def test_nothing_is_recorded_for_nobody() -> None:
    assert {path.stem for path in EXPECTED.glob("*.json")} == {consumer.key for consumer in CONSUMERS}
    assert {path.stem for path in material.RECORDED.glob("*.jsonl")} == set(NAMES)
