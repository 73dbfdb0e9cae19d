"""Feeding a run to the real Atropos API server, with the test as its trainer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.export.atropos import UNTRAINED, Atropos, load_tokenizer
from hermes_engine.batch.export.feed import Fed, feed
from hermes_engine.batch.export.groups import Groups
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.rewards import Reward
from hermes_engine.errors import EndpointDown, LimitReached, RequestRejected
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, play, thinks, uses
from tests.batch.test_export_forms import TOKENIZER
from tests.batch.trainer import Trainer


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    pytest.importorskip("atroposlib", reason="atroposlib is not installed: make test does it")
    server = Trainer()
    yield server
    server.close()


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["one", "two", "long", "half"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        played = uses()
        if prompt == "half":
            return Played(played.messages, "max_turns")
        if prompt == "long":
            last = played.messages[-1]
            return Played([*played.messages[:-1], type(last)("assistant", "x" * 9000, reasoning="r")])
        return played

    return play(tmp_path, player)


def fed(ran: Ran, url: str, *, everything: bool = False, reward: Reward | None = None, **options: Any) -> Fed:
    groups = Groups(Atropos(load_tokenizer(TOKENIZER)), reward, everything)
    told = Fed()
    asyncio.run(feed(RunFolder(ran.folder), url, groups, told, **options))
    return told


def test_the_trainer_gets_what_was_fed(ran: Ran, trainer: Trainer) -> None:
    told: list[str] = []
    outcome: list[Fed] = []
    feeding = threading.Thread(target=lambda: outcome.append(fed(ran, trainer.url, wait=60, tell=told.append)))
    feeding.start()
    time.sleep(0.3)
    assert trainer.call("GET", "/info")["batch_size"] == -1, "nothing was posted before the trainer came"
    trainer.register(2, longest=2000)
    time.sleep(0.3)
    assert trainer.batch() is None
    feeding.join(60)
    assert told == ["waiting for a trainer to register", "waiting for the trainer to ask for its first batch"]
    assert outcome == [Fed(2, 0, outcome[0].skipped, 0, 2)]
    assert outcome[0].skipped == {"2000 tokens or more, the trainer's limit": 1, "not completed: max_turns": 1}
    groups = trainer.batch()
    form = Atropos(load_tokenizer(TOKENIZER))
    wanted = [form.rows(row)[0] for row in ran.rows()[:2]]
    for group, expected in zip(groups, wanted, strict=True):
        for name in ("tokens", "masks", "scores", "messages", "overrides", "group_overrides", "inference_logprobs"):
            assert group[name] == expected[name], name
        assert any(mask != UNTRAINED for mask in group["masks"][0])
    assert trainer.batch() is None
    assert trainer.call("GET", "/status")["queue_size"] == 0


def test_what_fills_no_batch_is_told(ran: Ran, trainer: Trainer) -> None:
    trainer.register(3, longest=2000)
    trainer.batch()
    done = fed(ran, trainer.url, everything=True)
    assert (done.sent, done.remainder) == (3, 0)
    assert [group["scores"] for group in trainer.batch()] == [[1.0], [1.0], [0.0]]
    again = fed(ran, trainer.url)
    assert (again.sent, again.remainder) == (2, 2)
    assert trainer.batch() is None


def test_a_trainer_that_never_comes_is_waited_for_so_long(ran: Ran, trainer: Trainer) -> None:
    with pytest.raises(LimitReached, match="a trainer to register"):
        fed(ran, trainer.url, wait=0.3)


def test_nobody_there_is_one_line(ran: Ran) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EndpointDown, match="cannot be reached"):
        fed(ran, f"http://127.0.0.1:{port}")


def test_samples_of_a_prompt_are_one_group(tmp_path: Path, trainer: Trainer) -> None:
    """Five prompts of two samples, one of them short of a sample: batches of two groups, whole ones only."""
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(5)])
    seen: Counter[str] = Counter()

    def player(prompt: str, spec: AgentSpec) -> Played:
        seen[prompt] += 1
        if seen[prompt] == 2:
            return thinks(thought="") if prompt == "p1" else Played(uses().messages, "max_turns")
        return uses()

    ran = play(tmp_path, player, num_generations=2, num_workers=1)
    assert ran.summary.counts == {"total": 10, "kept": 9, "rejected": 1, "failed": 0, "invalid": 0, "pending": 0}
    trainer.register(3)
    trainer.batch()
    with pytest.raises(RequestRejected, match="batch of 3 is no multiple of 2 samples"):
        fed(ran, trainer.url)
    trainer.call("GET", "/reset_data")
    trainer.register(4)
    trainer.batch()
    done = fed(ran, trainer.url, reward=lambda record: 1.0 - record["sample"] / 4)
    assert (done.sent, done.remainder, dict(done.skipped)) == (4, 0, {"groups of fewer than 2 samples": 1})
    batches = [trainer.batch(), trainer.batch()]
    assert [len(batch) for batch in batches] == [2, 2]
    prompts = [[messages[0]["content"] for messages in group["messages"]] for batch in batches for group in batch]
    assert sorted(prompts) == [["p0", "p0"], ["p2", "p2"], ["p3", "p3"], ["p4", "p4"]]
    for group in batches[0] + batches[1]:
        assert group["scores"] == [1.0, 0.75]
        assert [len(tokens) for tokens in group["tokens"]] == [len(masks) for masks in group["masks"]]
        assert group["group_overrides"] == {}
    assert trainer.batch() is None
    assert trainer.call("GET", "/status")["queue_size"] == 0


def test_the_whole_chain_in_one_command() -> None:
    pytest.importorskip("atroposlib", reason="atroposlib is not installed: make test does it")
    done = subprocess.run(
        [sys.executable, "-m", "tests.batch.demo_atropos"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "the trainer took 7 batches of 4; the first:" in done.stdout
    assert "2 of them fill no whole batch of 4" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_chain_without_the_server_says_so() -> None:
    hide = (
        "import importlib.util as u, sys\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'atroposlib' else find(name, *more)"
    )
    run = "from tests.batch.demo_atropos import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", f"{hide}\n{run}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "atroposlib is not installed, so nothing was fed" in done.stdout
    assert "30 rows written" in done.stderr
