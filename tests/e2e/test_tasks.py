"""`hermes tasks` as a program: what it lists, and what it does with tasks of programs that live and that died."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.paths import Home
from tests.conftest import Serve
from tests.e2e.program import Done, hermes, start
from tests.e2e.terminal import Terminal
from tests.server.answers import call, hang, say, status
from tests.server.scripted import ScriptedServer
from tests.work.dead import at_work, killed_at_work
from tests.work.support import by_prompt

pytestmark = pytest.mark.e2e


def tasks(*args: str, server: ScriptedServer | None = None, cwd: Path | None = None) -> Done:
    """`hermes tasks ARGS`, on a scripted server where one is given."""
    flags = ("--base-url", server.base_url) if server is not None else ()
    return hermes(*flags, "tasks", *args, cwd=cwd)


def soon(condition: Callable[[], Any], seconds: float = 20) -> bool:
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not (held := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return bool(held)


def states() -> dict[str, str]:
    """The state of each task, by its id."""
    return {row["id"]: row["state"] for row in tasks("list", "--json").json}


def test_nothing_kept_is_an_empty_list_and_makes_no_file() -> None:
    assert tasks("list").out == ""
    assert tasks("list", "--json").json == []
    done = tasks("show", "ag_1")
    assert done.code == 2
    assert "no task" in done.err
    assert not Home.from_env().state_db.exists()


def test_tasks_are_listed_and_shown_while_their_program_lives(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"quick": say("brought it"), "slow": hang(60)}))
    with at_work(server, tmp_path, ["quick look\nat\tall", "slow look"], ends=1) as (_process, [quick, slow, _chat]):
        rows = {row[0]: row for row in tasks("list").rows}
        assert rows[quick][1:4] == ["quick", "background", "done"]
        assert rows[slow][1:4] == ["slow", "background", "running"]
        assert rows[quick][6:] == ["15", "", "quick look at all"]
        assert rows[slow][6:] == ["0", "", "slow look"], "what it costs is not known before its end"
        shown = tasks("show", quick)
        assert shown.code == 0
        assert shown.out.rstrip("\n").endswith("brought it")
        record = tasks("show", quick, "--json").json
        assert (record["answer"], record["usage"]["completion_tokens"]) == ("brought it", 5)
        assert [message["role"] for message in record["messages"]] == ["user", "assistant"]
        again = tasks("resume", slow, server=server)
        assert again.code == 2
        assert "is at work" in again.err
        assert states()[slow] == "running", "looking at it has not ended it"
    assert states()[slow] == "cancelled"


def test_a_task_of_another_program_is_stopped(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    with at_work(server, tmp_path, ["slow look"]) as (_process, [slow, _chat]):
        done = tasks("cancel", "slow")
        assert (done.code, done.out) == (0, f"slow {slow} is being stopped\n")
        assert soon(lambda: states()[slow] == "cancelled")
        assert tasks("cancel", slow).code == 2


def test_a_task_of_another_program_is_answered(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"write": [call("write_file", {"path": "a.txt", "content": "x"}), say("written")]}))
    with at_work(server, tmp_path, ["write a file"], mode="ask") as (_process, [task, _chat]):
        assert soon(lambda: tasks("show", task, "--json").json["asks"])
        (record,) = [row for row in tasks("list", "--json").json if row["id"] == task]
        assert (record["needs"], record["request"], record["state"]) == (True, record["asks"]["title"], "running")
        assert {row[0]: row[3] for row in tasks("list").rows}[task] == "needs you"
        wrong = tasks("answer", task, "perhaps")
        assert wrong.code == 2
        assert "once" in wrong.err
        assert tasks("answer", task, "once").code == 0
        assert soon(lambda: states()[task] == "done")
        assert tasks("answer", task, "once").code == 2
        record = tasks("show", task, "--json").json
        assert (record["needs"], record["request"]) == (False, None)
    assert (tmp_path / "a.txt").read_text() == "x"


def test_what_a_killed_program_left_goes_on_headless(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    [slow, chat] = killed_at_work(server, tmp_path, ["slow look"])
    assert states() == {slow: "interrupted"}
    server.script = by_prompt({"slow": [call("terminal", {"command": "echo so"}), say("brought it")]})
    done = tasks("resume", slow, server=server, cwd=tmp_path)
    assert (done.code, done.out) == (0, "brought it\n")
    assert "Run echo so" in done.err
    assert sorted(states().values()) == ["done", "interrupted"]
    new = next(row for row in tasks("list", "--json").json if row["state"] == "done")
    assert (new["owner"], new["answer"]) == (chat, "brought it")
    assert [m["role"] for m in server.requests[-2].messages] == ["system", "user"], "where it stood, said once"
    again = tasks("retry", slow, server=server, cwd=tmp_path)
    assert (again.code, again.out) == (0, "brought it\n")


def test_a_detached_one_goes_on_after_the_command_has_ended(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    [slow, _chat] = killed_at_work(server, tmp_path, ["slow look"])
    server.script = by_prompt({"slow": say("brought it", delay=0.5)})
    done = tasks("resume", slow, "--detach", server=server, cwd=tmp_path)
    assert done.code == 0
    assert "slow goes on in process" in done.out
    assert soon(lambda: "done" in states().values())
    log = Home.from_env().logs / "tasks.log"
    assert soon(lambda: "brought it" in log.read_text())
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_program_s_flags_hold_for_its_tasks_when_another_goes_on_with_them(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    other = serve(by_prompt({"slow": say("from elsewhere")}))
    [one, two, _chat] = killed_at_work(server, tmp_path, ["slow one", "slow two"])
    server.script = by_prompt({"slow": say("brought it")})
    done = tasks("resume", one, cwd=tmp_path)
    assert (done.code, done.out) == (0, "brought it\n"), "at the address, with the model it was started with"
    assert server.requests[-1].body["model"] == "scripted"
    done = tasks("resume", two, server=other, cwd=tmp_path)
    assert (done.code, done.out) == (0, "from elsewhere\n"), "what is given now stands above"
    assert states()[one] == "interrupted"
    newest = tasks("list", "--json").json[0]["id"]
    done = tasks("retry", newest, one, cwd=tmp_path)
    assert (done.code, done.out) == (0, "from elsewhere\nbrought it\n"), "each where its own program asked"


def test_what_goes_on_from_what_is_told(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    [slow, _chat] = killed_at_work(server, tmp_path, ["slow look"])
    server.script = by_prompt({"slow": say("")})
    assert tasks("resume", slow, cwd=tmp_path).code == 1
    second = next(row["id"] for row in tasks("list", "--json").json if row["state"] == "failed")
    server.script = by_prompt({"slow": say("brought it")})
    assert tasks("retry", second, cwd=tmp_path).code == 0
    chain = [(row["id"], row["follows"], row["followed_by"]) for row in tasks("list", "--json").json]
    third = chain[0][0]
    assert chain == [(third, second, None), (second, slow, third), (slow, None, second)]
    assert [row[3] for row in tasks("list").rows] == ["done", "failed", "interrupted"]
    assert f"run again, as {third}" in tasks("show", second).out
    assert f"goes on from {second}" in tasks("show", third).out
    for every, told in (((), ["done (2 before)"]), (("--all",), ["done (2 before)", f"failed, then {third}"])):
        with Terminal("tasks", "list", *every, columns=160) as terminal:
            for words in told:
                terminal.until(words)
            terminal.ended()
            assert terminal.text.count("ag_") == (5 if every else 1)


@pytest.mark.parametrize("fault", ["refused", "signal"])
def test_a_resumed_task_that_fails_or_is_stopped_says_so(fault: str, serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"slow": hang(60)}))
    [slow, _chat] = killed_at_work(server, tmp_path, ["slow look"])
    if fault == "refused":
        server.script = by_prompt({"slow": status(401, {"error": {"message": "no such key"}})})
        refused = tasks("resume", slow, cwd=tmp_path)
        assert (refused.code, refused.out) == (1, "")
        assert "no such key" in refused.err
        return
    process = start("tasks", "resume", slow, "--base-url", server.base_url, cwd=tmp_path)
    before = len(server.requests)
    assert server.wait_until(lambda: len(server.requests) == before + 1, 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b"")
    assert b"interrupted" in err
    assert sorted(states().values()) == ["cancelled", "interrupted"]
