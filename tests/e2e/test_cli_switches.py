"""Switches as scripts for other programs write them: `--resume=True`, `--resume true`, `--noresume`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.batch.support import dataset
from tests.e2e.program import ROOT, hermes

pytestmark = pytest.mark.e2e

RUN = ("batch", "run", "--dataset_file=d.jsonl", "--batch_size=2", "--run_name=r", "--model=demo")
EXISTS = "the run r exists already"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a dataset and a run of it that is done."""
    dataset(tmp_path / "d.jsonl", ["a"])
    assert hermes(*RUN, "--quiet=True", cwd=tmp_path).code == 0
    return tmp_path


@pytest.mark.parametrize("on", ["--resume", "--resume=True", "--resume=1", "--resume true", "--resume TRUE"])
def test_a_switch_is_on_in_every_form(folder: Path, on: str) -> None:
    done = hermes(*RUN, *on.split(), cwd=folder)
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert "exists already" not in done.err


@pytest.mark.parametrize("off", ["--resume=False", "--resume false", "--noresume", "--resume --resume=0"])
def test_a_switch_is_off_in_every_form(folder: Path, off: str) -> None:
    done = hermes(*RUN, *off.split(), cwd=folder)
    assert (done.code, EXISTS in done.err) == (2, True)


def test_a_switch_that_is_off_wins_over_the_run_s_own(folder: Path) -> None:
    dataset(folder / "e.jsonl", ["b"])
    flags = ("--dataset_file=e.jsonl", "--run_name=s", "--model=demo", "--batch_size=1")
    hermes("batch", "run", *flags, "--keep_without_reasoning=True", cwd=folder)
    assert '"keep_without_reasoning": true' in (folder / "data/s/run.json").read_text()
    hermes("batch", "run", *flags, "--resume", "--keep_without_reasoning=False", cwd=folder)
    assert '"keep_without_reasoning": false' in (folder / "data/s/run.json").read_text()


def test_what_is_neither_true_nor_false_is_wrong_usage(folder: Path) -> None:
    done = hermes(*RUN, "--resume=perhaps", cwd=folder)
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "hermes: Invalid value for '--resume': 'perhaps' is neither true nor false — see hermes batch run -h\n"
    )


def test_a_word_after_a_switch_of_a_command_with_words_is_its_own(folder: Path) -> None:
    done = hermes("batch", "retry", "--keep_work", "true", "--output_dir", "data", cwd=folder)
    assert (done.code, "true" in done.err) == (2, True)
    assert hermes("tools", "list", "--json=true").json[0]["name"] == "terminal"
    assert hermes("chat", "-q", "--json=True", "-m", "demo").out.startswith("_demo model")


def test_a_flag_without_its_value_names_the_command() -> None:
    assert "see hermes batch run -h" in hermes("batch", "run", "--run_name").err


def test_the_batch_runner_takes_the_same(folder: Path) -> None:
    command = (str(ROOT / "batch_runner.py"), *RUN[2:], "--resume=True")
    assert hermes(*command, command=(sys.executable,), cwd=folder).code == 0
