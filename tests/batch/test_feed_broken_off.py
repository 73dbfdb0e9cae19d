"""Feeding that is stopped or meets a server in trouble: what the server has is told, and nothing is sent twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.batch.ray_cluster import wait_until as until
from tests.batch.support import Ran, dataset, play, thinks
from tests.batch.test_export_forms import TOKENIZER
from tests.batch.trainer import Trainer

PROMPTS = [f"p{number}" for number in range(40)]
"""Three requests: 16, 16 and 8 groups."""

Start = Callable[..., Trainer]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", PROMPTS)
    return play(tmp_path, lambda prompt, spec: thinks(), num_workers=1)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """`start("late", "fail")` starts a server with a trainer whose batch is 20; it is hindered so."""
    pytest.importorskip("atroposlib", reason="atroposlib is not installed: make test does it")
    monkeypatch.setenv("HINDERED", str(tmp_path / "plan"))
    with ExitStack() as stack:

        def started(*plan: str) -> Trainer:
            (tmp_path / "plan").write_text(" ".join(plan))
            trainer = Trainer("tests.batch.hindered:app")
            stack.callback(trainer.kill)
            trainer.register(20)
            trainer.batch()
            return trainer

        yield started


def feeding(ran: Ran, trainer: Trainer, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hermes_tui.cli", "batch", "feed", "run", "--url", trainer.url]
    more = ["--tokenizer", str(TOKENIZER), "--output_dir", str(ran.folder.parent), *flags]
    return subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fed(ran: Ran, trainer: Trainer, *flags: str) -> tuple[int, str, list[str]]:
    process = feeding(ran, trainer, *flags)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err.splitlines()


def test_what_was_sent_before_a_stop_is_not_sent_again(ran: Ran, start: Start, tmp_path: Path) -> None:
    """Stopped while the server is about to answer: the answer is waited for, and counts."""
    trainer = start("taken", "late")
    process = feeding(ran, trainer)
    until(lambda: (tmp_path / "plan.taken").exists() and (tmp_path / "plan.taken").stat().st_size == 2)
    process.send_signal(signal.SIGINT)
    (tmp_path / "plan.go").touch()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines() == ["sent 32 groups; --skip 32 goes on behind them", "hermes: stopped"]
    assert fed(ran, trainer, "--skip", "32") == (0, "sent 8 groups\n", [])
    assert sorted(trainer.queued(), key=PROMPTS.index) == PROMPTS


def test_a_stop_while_the_server_is_silent_says_what_is_not_known(ran: Ran, start: Start, tmp_path: Path) -> None:
    trainer = start("taken", "silent")
    process = feeding(ran, trainer)
    until(lambda: (tmp_path / "plan.taken").exists() and (tmp_path / "plan.taken").stat().st_size == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines() == [
        "sent 16 groups; --skip 16 goes on behind them",
        "whether the server took the next 16 is not known: it did not answer",
        "hermes: stopped",
    ]


def test_a_stop_does_not_wait_for_a_reward(ran: Ran, start: Start, tmp_path: Path) -> None:
    (tmp_path / "slow_reward.py").write_text(
        "import pathlib, time\ndef score(record):\n    pathlib.Path('asked').touch()\n    time.sleep(600)\n"
    )
    trainer = start()
    command = [sys.executable, "-m", "hermes_tui.cli", "batch", "feed", "run", "--url", trainer.url]
    flags = ["--tokenizer", str(TOKENIZER), "--reward", "slow_reward:score"]
    process = subprocess.Popen([*command, *flags], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until(lambda: (tmp_path / "asked").exists())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "hermes: stopped\n")
    assert trainer.call("GET", "/status")["queue_size"] == 0


@pytest.mark.parametrize(
    ("hindrance", "line"),
    [
        ("fail", 'hermes: the server failed over /scored_data_list: 500 {"detail": "no room"}'),
        ("refuse", 'hermes: the server refused /scored_data_list: 422 {"detail": "no room"}'),
    ],
)
def test_a_server_that_fails_or_refuses(ran: Ran, start: Start, hindrance: str, line: str) -> None:
    trainer = start("taken", hindrance)
    code, out, err = fed(ran, trainer)
    unsure = ["whether the server took the next 16 is not known: it did not answer"] if hindrance == "fail" else []
    assert (code, out) == (1, "")
    assert err == ["sent 16 groups; --skip 16 goes on behind them", *unsure, line]
    assert fed(ran, trainer, "--skip", "16") == (0, "sent 24 groups\n", [])
    assert sorted(trainer.queued(), key=PROMPTS.index) == PROMPTS


def test_a_server_that_goes_away(ran: Ran, start: Start, tmp_path: Path) -> None:
    trainer = start("taken", "silent")
    process = feeding(ran, trainer)
    until(lambda: (tmp_path / "plan.taken").exists() and (tmp_path / "plan.taken").stat().st_size == 2)
    trainer.kill()
    _, err = process.communicate(timeout=120)
    first, second, last = err.splitlines()
    assert process.returncode == 1
    assert first == "sent 16 groups; --skip 16 goes on behind them"
    assert second == "whether the server took the next 16 is not known: it did not answer"
    assert last.startswith(f"hermes: the Atropos server at {trainer.url} cannot be reached: ")


def test_nothing_is_sent_to_a_server_that_was_reset_meanwhile(ran: Ran, start: Start, tmp_path: Path) -> None:
    """Groups without a trainer would spoil it: a later registration would count for nothing."""
    trainer = start("taken", "late")
    process = feeding(ran, trainer)
    until(lambda: (tmp_path / "plan.taken").exists() and (tmp_path / "plan.taken").stat().st_size == 2)
    trainer.call("GET", "/reset_data")
    (tmp_path / "plan.go").touch()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith("hermes: the trainer has gone: the server was reset, or is another one now")
    assert trainer.call("GET", "/info")["batch_size"] == -1
    trainer.register(20)
    assert trainer.call("GET", "/info")["batch_size"] == 20
