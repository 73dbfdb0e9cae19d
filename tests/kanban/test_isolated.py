"""Workers that are processes of their own: `hermes kanban run --isolation process`."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hermes_engine.board import Board, CardDraft
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.kanban.shop import board_of, calls_made, finishing, first_line, of_program, run_board, told, until
from tests.server.answers import Answer, Seen, call, hang, say, status

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
PROCESS = ("--isolation", "process")


@pytest.fixture
def board(home: Path) -> Iterator[Board]:
    """The board."""
    opened = board_of(home)
    yield opened
    opened.close()


def worker_of(program: subprocess.Popen[bytes]) -> psutil.Process:
    """The one worker process of a dispatcher."""
    found: list[psutil.Process] = []

    def there() -> bool:
        found[:] = [p for p in psutil.Process(program.pid).children() if "work" in p.cmdline()]
        return len(found) == 1

    until(there)
    return found[0]


@pytest.mark.parametrize("verb", [("block", "k1", "enough"), ("archive", "k1"), ("reclaim", "k1")], ids=lambda v: v[0])
def test_taking_a_card_from_a_worker_that_was_killed_ends_its_commands_where_nobody_works_the_board(
    serve: Serve, work: Path, board: Board, verb: tuple[str, ...]
) -> None:
    board.create(CardDraft("x"))
    program = run_board(serve(lambda seen: call("terminal", {"command": "setsid sleep 990"})), work, *PROCESS)
    worker = worker_of(program)
    until(lambda: of_program(worker.pid))
    for process in (psutil.Process(program.pid), worker):
        process.kill()
    program.communicate(timeout=10)
    assert of_program(worker.pid), "nobody is there who would end it"
    assert hermes("kanban", *verb).code == 0
    assert of_program(worker.pid) == []


def test_each_card_is_worked_by_a_process_that_owns_its_run(serve: Serve, work: Path, board: Board) -> None:
    board.create_all([CardDraft("a"), CardDraft("b", parents=("@0",)), CardDraft("c", assignee="reviewer")])
    server = serve(finishing)
    program = run_board(server, work, "--once", *PROCESS)
    code, complaint = told(program)
    assert code == 0, complaint
    assert sorted(map(first_line, server.requests)) == ["Card k1: a", "Card k2: b", "Card k3: c"]
    pids = {run.owner.pid for card in ("k1", "k2", "k3") for run in board.runs(card)}
    assert len(pids) == 3
    assert program.pid not in pids
    assert any("default-k1" in line for line in complaint.splitlines()), complaint
    assert "Traceback" not in complaint


def test_a_killed_worker_process_is_a_lost_try_and_its_commands_are_ended(
    serve: Serve, work: Path, board: Board
) -> None:
    board.create(CardDraft("x"))
    server = serve(
        lambda seen: call("terminal", {"command": "setsid sleep 990"}) if seen.index == 0 else finishing(seen)
    )
    program = run_board(server, work, "--once", *PROCESS)
    worker = worker_of(program)
    until(lambda: of_program(worker.pid))
    worker.kill()
    code, complaint = told(program)
    assert code == 0, complaint
    assert of_program(worker.pid) == []
    runs = board.runs("k1")
    assert [run.state for run in runs] == ["lost", "done"]


def test_f5_8_archiving_the_card_ends_the_process_and_what_it_started(serve: Serve, work: Path, board: Board) -> None:
    board.create(CardDraft("x"))
    server = serve(lambda seen: call("terminal", {"command": "setsid sleep 989"}))
    program = run_board(server, work, "--once", *PROCESS)
    worker = worker_of(program)
    until(lambda: of_program(worker.pid))
    board.archive("k1")
    assert told(program, 20)[0] == 0
    assert not worker.is_running()
    assert of_program(worker.pid) == []
    assert board.card("k1").status == "archived"
    assert len(server.requests) == 1


def test_a_suspended_worker_process_whose_card_was_taken_is_ended(serve: Serve, work: Path, board: Board) -> None:
    board.create(CardDraft("x"))
    server = serve(lambda seen: hang(60) if seen.index == 0 else finishing(seen))
    program = run_board(server, work, "--once", *PROCESS)
    worker = worker_of(program)
    assert server.wait_until(lambda: server.open_requests == 1)
    worker.suspend()
    board.reclaim("k1")
    assert told(program, 40)[0] == 0
    assert not worker.is_running()
    assert [run.state for run in board.runs("k1")] == ["stopped", "done"]


def test_an_interrupt_ends_worker_processes_and_their_cards_wait_anew(serve: Serve, work: Path, board: Board) -> None:
    board.create(CardDraft("x", max_retries=0))
    program = run_board(serve(lambda seen: call("terminal", {"command": "sleep 988"})), work, *PROCESS)
    worker = worker_of(program)
    until(lambda: of_program(worker.pid))
    program.send_signal(signal.SIGINT)
    assert told(program, 20)[0] == 130
    assert not worker.is_running()
    assert of_program(worker.pid) == []
    assert (board.card("k1").status, board.runs("k1")[0].state) == ("ready", "stopped")


def test_failures_and_outages_of_a_process_are_told_apart(serve: Serve, home: Path, work: Path, board: Board) -> None:
    (home / "config.yaml").write_text(
        "toolsets: [kanban]\nkanban: {retry_seconds: 0.05, isolation: process}\nprovider: {max_retries: 0}\n"
    )
    board.create(CardDraft("down", max_retries=0))
    board.create(CardDraft("lazy", max_retries=0))

    def script(seen: Seen) -> Answer:
        if "lazy" in str(seen.messages):
            return say("I do not feel like it")
        if seen.messages[-1]["content"] == "Hello":
            return say("hi")
        downs = [one for one in server.requests if "down" in str(one.messages)]
        return status(503, "loading") if len(downs) == 1 else finishing(seen)

    server = serve(script)
    code, complaint = told(run_board(server, work, "--once"))
    assert code == 1, complaint
    assert [run.state for run in board.runs("k1")] == ["stopped", "done"]
    assert [run.state for run in board.runs("k2")] == ["failed"]
    assert "I do not feel like it" in board.card("k2").reason
    assert calls_made(server.requests[-1]) == 0
