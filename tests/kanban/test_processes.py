"""Boards worked by real programs: several at once, killed, suspended, interrupted; nothing they started lives on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hermes_engine.board import CardDraft
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.kanban.shop import board_of, calls_made, finishing, first_line, of_program, run_board, told, until
from tests.server.answers import Answer, Seen, call, hang

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

Programs = list["subprocess.Popen[bytes]"]


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Those the test starts; none outlives it."""
    started: Programs = []
    yield started
    for program in started:
        if program.poll() is None:
            program.send_signal(signal.SIGCONT)
            program.kill()
        program.communicate()


def alone(pid: int) -> bool:
    """Whether no process that commands of this program started is left."""
    return not of_program(pid)


def long_command(seen: Seen) -> Answer:
    """A worker whose command leaves its group and session and starts further ones."""
    return call("terminal", {"command": "setsid sh -c 'setsid sleep 998 & sleep 999' & sleep 997"})


def test_f5_11_grandchildren_of_a_worker_whose_time_is_over_are_gone(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    (home / "config.yaml").write_text("toolsets: [terminal, kanban]\nkanban: {timeout_seconds: 3}\n")
    assert hermes("kanban", "create", "x", "--max-retries", "0").code == 0
    program = run_board(serve(long_command), work, "--once")
    programs.append(program)
    until(lambda: len([p for p in of_program(program.pid) if p.name() == "sleep"]) == 3)
    code, complaint = told(program)
    assert code == 1, complaint
    assert alone(program.pid)
    assert board_of(home).card("k1").reason.startswith("limit reached after 1 try: stopped after 3 s")


def test_f5_8_f5_11_archiving_a_running_card_ends_its_workers_processes(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    assert hermes("kanban", "create", "x").code == 0
    program = run_board(serve(long_command), work, "--once")
    programs.append(program)
    until(lambda: len([p for p in of_program(program.pid) if p.name() == "sleep"]) == 3)
    assert hermes("kanban", "archive", "k1").code == 0
    until(lambda: alone(program.pid), 8)
    assert told(program)[0] == 0
    assert hermes("kanban", "show", "k1", "--json").json["status"] == "archived"


def test_f5_12_thirty_workers_leave_no_zombie(serve: Serve, home: Path, work: Path, programs: Programs) -> None:
    def script(seen: Seen) -> Answer:
        if calls_made(seen) == 0:
            return call("terminal", {"command": "true & setsid true & echo hi"})
        return finishing(seen)

    board = board_of(home)
    board.create_all([CardDraft(f"card {number}") for number in range(30)])
    program = run_board(serve(script), work, "--workers", "6")
    programs.append(program)
    until(lambda: board.counts()["done"] == 30, 60)
    children = psutil.Process(program.pid).children(recursive=True)
    assert [child for child in children if child.status() == psutil.STATUS_ZOMBIE] == []
    until(lambda: psutil.Process(program.pid).children(recursive=True) == [], 5)
    program.send_signal(signal.SIGINT)
    assert told(program)[0] == 130


def test_f5_13_a_killed_dispatchers_card_is_taken_over_once_after_its_processes_have_ended(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    """Two others wait for it; a process that merely has its pid's number in its mark is left alone."""
    assert hermes("kanban", "create", "x").code == 0
    sleepers: list[int] = []

    def script(seen: Seen) -> Answer:
        if seen.index == 0:
            return call("terminal", {"command": "sleep 996 & setsid sleep 995"})
        sleepers.append(sum(process.name() == "sleep" for process in of_program(first.pid)))
        return finishing(seen)

    server = serve(script)
    first = run_board(server, work)
    programs.append(first)
    until(lambda: len([p for p in of_program(first.pid) if p.name() == "sleep"]) == 2)
    others = [run_board(server, work) for _ in range(2)]
    programs.extend(others)
    board = board_of(home)
    until(lambda: len(board.attended()) == 3)
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "NOTE": f"x-{first.pid}-1:a:1"})
    try:
        first.kill()
        first.wait()
        until(lambda: board.card("k1").status == "done")
        assert [run.state for run in board.runs("k1")] == ["lost", "done"]
        assert sleepers == [0], "what the dead one's worker had started was ended before the card was worked again"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_suspended_dispatcher_whose_card_was_taken_writes_nothing_when_it_wakes(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    (home / "config.yaml").write_text("toolsets: [terminal, kanban]\nkanban: {claim_ttl_seconds: 2}\n")
    assert hermes("kanban", "create", "x", "--workspace", f"dir:{work}").code == 0

    def script(seen: Seen) -> Answer:
        if seen.index == 0:
            return call("terminal", {"command": "touch old"}, first_delay=1.5)
        if seen.index == 1:
            return call("kanban_complete", {"summary": "new"}, first_delay=6)
        return call("terminal", {"command": "touch more"})

    server = serve(script)
    first = run_board(server, work)
    programs.append(first)
    assert server.wait_until(lambda: server.open_requests == 1, 30)
    first.send_signal(signal.SIGSTOP)
    second = run_board(server, work)
    programs.append(second)
    board = board_of(home)
    until(lambda: len(board.attended()) == 2)
    until(lambda: (run := board.card("k1").run) is not None and run.expires > run.heartbeat + 2.5)
    assert board.card("k1").status == "running", "its owner lives: the lease lapsed and was extended, not taken"
    assert hermes("kanban", "reclaim", "k1").code == 0
    assert server.wait_until(lambda: len(server.requests) == 2, 30)
    first.send_signal(signal.SIGCONT)
    until(lambda: board.card("k1").status == "done")
    assert [run.state for run in board.runs("k1")] == ["stopped", "done"]
    assert board.card("k1").result == "new"
    assert not (work / "old").exists()
    assert len(server.requests) == 2
    assert first.poll() is None, "it goes on to work the board"


def test_a_suspended_dispatcher_whose_card_was_left_goes_on(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    (home / "config.yaml").write_text("toolsets: [terminal, kanban]\nkanban: {claim_ttl_seconds: 3}\n")
    assert hermes("kanban", "create", "x").code == 0
    server = serve(lambda seen: call("kanban_complete", {"summary": "x"}, first_delay=1.0))
    first = run_board(server, work, "--once")
    programs.append(first)
    assert server.wait_until(lambda: server.open_requests == 1, 30)
    first.send_signal(signal.SIGSTOP)
    board = board_of(home)
    until(lambda: (run := board.card("k1").run) is not None and time.time() > run.expires + 1.5)
    first.send_signal(signal.SIGCONT)
    assert told(first)[0] == 0
    assert [run.state for run in board.runs("k1")] == ["done"]


def test_two_dispatchers_work_sixty_cards_once_each_and_in_order(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    board = board_of(home)
    drafts = [CardDraft(f"card {n}", parents=(f"@{n - 3}", f"@{n // 2}") if n >= 3 else ()) for n in range(60)]
    board.create_all(drafts)
    server = serve(lambda seen: call("kanban_complete", {"summary": "x"}, first_delay=0.15))
    programs.append(run_board(server, work, "--workers", "2"))
    until(lambda: server.requests)
    programs.append(run_board(server, work, "--workers", "4"))
    until(lambda: len(board.attended()) == 2 and board.counts()["done"] == 60, 90)
    for program in programs:
        program.send_signal(signal.SIGINT)
    assert [told(program)[0] for program in programs] == [130, 130]
    assert Counter(map(first_line, server.requests)) == Counter(f"Card k{n + 1}: card {n}" for n in range(60))
    shown = {details.card.id: details for details in board.details()}
    assert {details.card.status for details in shown.values()} == {"done"}
    for details in shown.values():
        [run] = details.runs
        for parent in details.card.parents:
            assert (shown[parent].card.finished or 0) <= run.started
    owners = {details.runs[0].owner.pid for details in shown.values()}
    assert len(owners) == 2, "both took part"
    spans = [(run.started, run.ended or 0) for details in shown.values() for run in details.runs]
    assert max(sum(began <= at < ended for began, ended in spans) for at, _ in spans) <= 4, "the cap is the board's"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_workers_and_their_cards_wait_anew(
    serve: Serve, home: Path, work: Path, programs: Programs, number: signal.Signals
) -> None:
    for title in ("a", "b"):
        assert hermes("kanban", "create", title, "--max-retries", "0").code == 0
    server = serve(lambda seen: long_command(seen) if "k1" in first_line(seen) else hang(60))
    program = run_board(server, work, "--once")
    programs.append(program)
    until(lambda: len([p for p in of_program(program.pid) if p.name() == "sleep"]) == 3 and server.open_requests == 1)
    program.send_signal(number)
    code, complaint = told(program, 10)
    assert code == 130, complaint
    assert "cards that were at work wait anew" in complaint
    assert alone(program.pid)
    board = board_of(home)
    assert [card.status for card in board.cards()] == ["ready", "ready"]
    assert [run.state for card in ("k1", "k2") for run in board.runs(card)] == ["stopped", "stopped"]
    assert board.attended() == ()


def test_a_second_interrupt_ends_at_once_and_leaves_no_process(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    assert hermes("kanban", "create", "a").code == 0
    program = run_board(serve(lambda seen: call("terminal", {"command": "trap '' TERM; sleep 994"})), work)
    programs.append(program)
    until(lambda: of_program(program.pid))
    program.send_signal(signal.SIGINT)
    program.send_signal(signal.SIGINT)
    assert told(program, 10)[0] == 130
    until(lambda: alone(program.pid), 5)


def test_progress_names_the_card_and_its_worker(serve: Serve, home: Path, work: Path, programs: Programs) -> None:
    assert hermes("kanban", "create", "first \x1b[31mone", "--max-retries", "0").code == 0
    server = serve(lambda seen: call("kanban_block", {"reason": "no key"}))
    program = run_board(server, work, "--once")
    programs.append(program)
    code, complaint = told(program)
    assert code == 1
    lines = complaint.splitlines()
    assert any("default-k1" in line and "k1 first" in line for line in lines), complaint
    assert "k1 running" in lines
    assert "k1 blocked: no key" in lines
    assert "hermes: 1 card is blocked: hermes kanban list --status blocked" in lines
    assert "\x1b" not in complaint


def test_events_as_json_are_the_only_thing_on_standard_output(serve: Serve, home: Path, work: Path) -> None:
    assert hermes("kanban", "create", "first").code == 0
    server = serve([call("kanban_complete", {"summary": "done it"})])
    program = run_board(server, work, "--once", "--json")
    output, complaint = program.communicate(timeout=60)
    assert (program.returncode, complaint) == (0, b"")
    events = [json.loads(line) for line in output.splitlines()]
    assert [event["status"] for event in events if event["type"] == "CardChanged"] == ["running", "done"]
    assert {"AgentStarted", "TurnFinished", "AgentFinished"} <= {event["type"] for event in events}


def test_a_board_whose_reader_leaves_is_worked_on(serve: Serve, home: Path, work: Path) -> None:
    assert hermes("kanban", "create", "first").code == 0
    server = serve([call("kanban_complete", {"summary": "done it"})])
    program = run_board(server, work, "--once", "--json")
    assert program.stdout is not None
    program.stdout.close()
    assert program.wait(60) == 1
    assert program.stderr is not None
    assert program.stderr.read() == b""
    program.stderr.close()
    assert hermes("kanban", "show", "k1", "--json").json["status"] == "done"


def test_once_ends_when_only_what_it_cannot_work_is_left(
    serve: Serve, home: Path, work: Path, programs: Programs
) -> None:
    board = board_of(home)
    board.create_all([
        CardDraft("nobody's", assignee="ghost"), CardDraft("unsorted", triage=True), CardDraft("blocked"),
        CardDraft("behind it", parents=("@2",)), CardDraft("for a person"), CardDraft("work"),
    ])  # fmt: skip
    board.block("k3", "no key")
    board.review("k5")
    server = serve(finishing)
    program = run_board(server, work, "--once", "--assignee", "default")
    programs.append(program)
    assert told(program)[0] == 1
    assert [card.status for card in board.cards()] == ["ready", "triage", "blocked", "todo", "review", "done"]
    assert len(server.requests) == 1
    board.archive("k3")
    again = run_board(server, work, "--once")
    programs.append(again)
    assert told(again)[0] == 0, "nothing is blocked any more"
