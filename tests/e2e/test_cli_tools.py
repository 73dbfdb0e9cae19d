"""`hermes tools`, `sessions`, `doctor` as processes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from hermes_engine.toolsets import TOOLSETS
from tests.conftest import Serve
from tests.e2e.program import COMMAND, environment, hermes
from tests.e2e.terminal import Terminal
from tests.server.scripted import say, status

pytestmark = pytest.mark.e2e


def toolsets() -> list[str]:
    """What is enabled, as a script reads it."""
    return [item["name"] for item in hermes("tools", "list", "--json").json if item["enabled"]]


def test_list_is_one_record_a_line_and_json() -> None:
    done = hermes("tools", "list")
    assert (done.code, done.err) == (0, "")
    assert [row[0] for row in done.rows] == list(TOOLSETS)
    assert {row[1] for row in done.rows} == {"on", "off"}
    assert toolsets() == ["terminal", "file", "delegation"]
    listed = {item["name"]: item for item in hermes("tools", "list", "--json").json}
    assert listed["terminal"]["tools"] == ["terminal", "process"]
    assert listed["terminal"]["tokens"] > 50
    assert listed["kanban"]["enabled"] is False


def test_enable_kanban_says_what_changed_and_what_it_costs_and_a_second_time_says_so(isolated_home: Path) -> None:
    done = hermes("tools", "enable", "kanban")
    assert (done.code, done.err) == (0, "")
    assert "enabled kanban in profile default" in done.out
    assert "tokens" in done.out
    assert "kanban" in toolsets()
    again = hermes("tools", "enable", "kanban")
    assert again.code == 0
    assert "already" in again.out
    assert stat.S_IMODE((isolated_home / "config.yaml").stat().st_mode) == 0o600


def test_an_unknown_name_is_exit_2_lists_the_valid_ones_and_changes_nothing(isolated_home: Path) -> None:
    for verb in ("enable", "disable"):
        done = hermes("tools", verb, "web", "kanbann")
        assert (done.code, done.out) == (2, "")
        assert "did you mean kanban?" in done.err
        assert all(name in done.err for name in TOOLSETS)
    assert not (isolated_home / "config.yaml").exists()


def test_all_never_means_kanban() -> None:
    assert hermes("tools", "enable", "all").code == 0
    assert toolsets() == [name for name in TOOLSETS if name != "kanban"]


def test_disable_takes_a_set_off_every_request(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    assert "disabled terminal" in hermes("tools", "disable", "terminal").out
    assert "already" in hermes("tools", "disable", "terminal").out
    hermes("chat", "-q", "x", "--base-url", server.base_url, "-m", "m", cwd=tmp_path)
    assert "terminal" not in server.requests[0].tools
    assert "read_file" in server.requests[0].tools


def test_f12_5_comments_and_other_keys_stay(isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("# mine\nmodel: m # best\ntoolsets: [terminal, web]\nmystery: 1\n")
    assert hermes("tools", "disable", "web").code == 0
    assert file.read_text() == "# mine\nmodel: m # best\ntoolsets: [terminal]\nmystery: 1\n"


def test_the_last_set_goes_off_a_list_with_comments(isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("toolsets:   # mine\n  - terminal\n  - file   # text\n\n# a turn\nlimits:\n  max_turns: 20\n")
    assert hermes("tools", "disable", "terminal", "file").code == 0
    assert file.read_text() == "toolsets: [] # mine\n\n# a turn\nlimits:\n  max_turns: 20\n"
    assert toolsets() == []


def test_f12_6_two_writers_lose_nothing(isolated_home: Path) -> None:
    hermes("config", "set", "toolsets", "terminal,file,web,todo")
    commands = [[*COMMAND, "tools", "disable", name] for name in ("web", "todo")]
    for command in [subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) for command in commands]:
        assert command.wait(30) == 0
    assert toolsets() == ["terminal", "file"]


def test_a_setting_set_to_nothing_has_its_default_again(isolated_home: Path) -> None:
    assert hermes("config", "set", "model", "m").out == f"model is m in {isolated_home}/config.yaml\n"
    done = hermes("config", "set", "model", "")
    assert (done.code, done.out) == (0, f"model is empty in {isolated_home}/config.yaml: its default counts\n")
    assert hermes("config", "get", "model").out == "anthropic/claude-sonnet-4.6\n"


def test_a_flag_names_sets_as_the_settings_write_them() -> None:
    for typed, on in (("[]", []), ("", []), ("[terminal, 'web']", ["terminal", "web"]), ("web,file", ["file", "web"])):
        done = hermes("tools", "list", "--json", "-t", typed)
        assert [item["name"] for item in done.json if item["enabled"]] == on


def test_tools_of_a_profile_are_its_own() -> None:
    hermes("profile", "create", "coder")
    assert "in profile coder" in hermes("tools", "enable", "web", "-p", "coder").out
    assert "web" not in toolsets()
    assert ["web", "on"] in [row[:2] for row in hermes("-p", "coder", "tools", "list").rows]


def test_at_a_terminal_the_list_is_aligned_with_a_heading() -> None:
    with Terminal("tools", "list", columns=80) as terminal:
        terminal.until("kanban")
        assert terminal.ended() == 0
        assert terminal.screen.splitlines()[0].split()[0] == "toolset"
        assert "\t" not in terminal.raw.decode()


# -- sessions -----------------------------------------------------------------------------------------------------


def chat(url: str, prompt: str, cwd: Path) -> str:
    """One saved chat's id."""
    return str(hermes("chat", "-q", prompt, "--json", "--base-url", url, "-m", "m", cwd=cwd).json["session_id"])


def test_sessions_search_rename_fork_export(serve: Serve, tmp_path: Path) -> None:
    assert (hermes("sessions", "search", "x").out, hermes("sessions", "search", "x", "--json").json) == ("", [])
    server = serve([say("the blue answer"), say("another")])
    flags = ("--base-url", server.base_url, "-m", "m", "-t", "")
    for prompt in ("what colour?", "and now?"):
        assert hermes("chat", "-q", prompt, *flags, cwd=tmp_path).code == 0
    second, first = (row[0] for row in hermes("sessions", "list").rows)
    [[session, name, _when, matches, excerpt]] = hermes("sessions", "search", "BLUE", "answer").rows
    assert (session, name, matches, excerpt) == (first, "what colour?", "1", "the blue answer")
    [found] = hermes("sessions", "search", "colour", "--json").json
    assert (found["id"], found["matches"], found["excerpt"]) == (first, 1, "what colour?")
    assert hermes("sessions", "rename", first, "The", "colours").code == 0
    made = hermes("sessions", "fork", "The colours").out.strip()
    copy = hermes("sessions", "show", made, "--json").json
    assert (copy["title"], len(copy["messages"])) == ("The colours (2)", 2)
    assert hermes("sessions", "fork", second, "--back", "1", "--json").json["messages"] == 0
    refused = hermes("sessions", "fork", second, "--back", "2")
    assert (refused.code, refused.out) == (2, "")
    assert hermes("sessions", "export", first).out == (
        "# The colours\n\nModel: m\n\n## User\n\nwhat colour?\n\n## Assistant\n\nthe blue answer\n"
    )
    assert hermes("sessions", "export", first, "-o", "-").out == hermes("sessions", "export", first).out
    assert hermes("sessions", "export", first, "-o", "a.json", cwd=tmp_path).code == 0
    assert json.loads((tmp_path / "a.json").read_text())["messages"][1]["content"] == "the blue answer"
    again = hermes("sessions", "export", first, "-o", "a.json", cwd=tmp_path)
    assert (again.code, "exists already" in again.err) == (2, True)


def test_sessions_list_show_delete(serve: Serve, tmp_path: Path) -> None:
    assert hermes("sessions", "list").out == ""
    assert hermes("sessions", "list", "--json").json == []
    server = serve([say("the answer")])
    first, second = chat(server.base_url, "one\ttab", tmp_path), chat(server.base_url, "two " + "w" * 300, tmp_path)
    rows = hermes("sessions", "list").rows
    assert [row[0] for row in rows] == [second, first]
    assert all(len(row) == 5 for row in rows)
    shown = hermes("sessions", "show", first, "--json").json
    assert [(item["role"], item["content"]) for item in shown["messages"]] == [
        ("user", "one\ttab"),
        ("assistant", "the answer"),
    ]
    assert "the answer" in hermes("sessions", "show", first).out
    refused = hermes("sessions", "delete", first)
    assert (refused.code, refused.out) == (2, "")
    assert hermes("sessions", "delete", first, "-y").code == 0
    assert [row[0] for row in hermes("sessions", "list").rows] == [second]


def test_resume_opens_the_chat_again(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("the answer")])
    session = chat(server.base_url, "one", tmp_path)
    flags = ("--base-url", server.base_url, "-m", "m")
    with Terminal("sessions", "resume", session[:17], *flags, cwd=tmp_path, term="dumb") as terminal:
        terminal.until("Going on with one: 2 messages.")
        terminal.line("/quit")
        assert terminal.ended() == 0


def test_reading_makes_no_file(isolated_home: Path) -> None:
    hermes("sessions", "list")
    hermes("tools", "list")
    hermes("profile", "list")
    hermes("config", "get")
    hermes("doctor", "-m", "demo")
    assert not isolated_home.exists()


@pytest.mark.parametrize("wanted", ["nosuch", "../../x", "a\tb"])
def test_f10_6_an_unknown_session_is_exit_2(wanted: str) -> None:
    for verb in (["show"], ["delete", "-y"], ["resume"]):
        done = hermes("sessions", *verb, wanted)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1


def test_a_state_file_of_another_program_is_left_alone(isolated_home: Path) -> None:
    isolated_home.mkdir(mode=0o700)
    (isolated_home / "state.db").write_bytes(b"not a database at all" * 100)
    before = (isolated_home / "state.db").read_bytes()
    done = hermes("sessions", "list")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert (isolated_home / "state.db").read_bytes() == before


def test_f10_4_state_files_are_private_whatever_the_umask(serve: Serve, tmp_path: Path, isolated_home: Path) -> None:
    server = serve([say("x")])
    old = os.umask(0)
    try:
        chat(server.base_url, "x", tmp_path)
    finally:
        os.umask(old)
    modes = {
        str(path.relative_to(isolated_home)): stat.S_IMODE(path.stat().st_mode) for path in isolated_home.rglob("*")
    }
    assert "state.db" in modes
    assert stat.S_IMODE(isolated_home.stat().st_mode) == 0o700
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


# -- doctor -------------------------------------------------------------------------------------------------------


def test_doctor_names_each_part_and_goes_on_the_network_only_with_probe(serve: Serve) -> None:
    server = serve([say("x")])
    flags = ("--base-url", server.base_url, "-m", "m", "--api-key", "sk-secret-123456")
    done = hermes("doctor", *flags)
    assert done.code == 0
    assert {row[1] for row in done.rows} >= {"python", "home", "config", "profile", "model", "endpoint", "terminal"}
    assert "sk-secret-123456" not in done.out
    assert server.requests == server.others == []
    probed = hermes("doctor", "--probe", *flags)
    assert ["ok", "reach", "it answers"] in probed.rows
    assert server.others[0].headers["authorization"] == "Bearer sk-secret-123456"


def test_doctor_tells_a_refused_key_and_a_dead_address(serve: Serve) -> None:
    server = serve([say("x")], others={"/v1/models": status(401, "no")})
    done = hermes("doctor", "--probe", "--base-url", server.base_url, "-m", "m", "--api-key", "sk-wrong-123456")
    assert (done.code, done.err) == (1, "")
    assert "401: the key was refused" in done.out
    hermes("doctor", "--probe", "--base-url", server.base_url.replace("//", "//me:word@"), "-m", "m")
    assert server.others[-1].headers["authorization"] == "Basic bWU6d29yZA=="
    dead = hermes("doctor", "--probe", "--base-url", "http://127.0.0.1:9/v1", "-m", "m", "--json")
    assert dead.code == 1
    assert [item["state"] for item in dead.json if item["name"] == "reach"] == ["fault"]


@pytest.mark.parametrize(("file", "check"), [("state.db", "sqlite"), ("kanban.db", "board")])
def test_doctor_tells_that_saved_chats_or_the_board_cannot_be_read(file: str, check: str, isolated_home: Path) -> None:
    isolated_home.mkdir(mode=0o700)
    (isolated_home / file).write_text("of another program")
    done = hermes("doctor", "-m", "demo")
    assert done.code == 1
    assert [row[1] for row in done.rows if row[0] == "fault"] == [check]
    assert str(isolated_home / file) in done.out


def test_doctor_with_a_broken_set_up_says_where(isolated_home: Path) -> None:
    assert hermes("doctor").code == 1, "no model is set up"
    isolated_home.mkdir()
    (isolated_home / "config.yaml").write_text("model: [unclosed\n")
    done = hermes("doctor", "--json")
    assert done.code == 2
    faults = [item for item in json.loads(done.out) if item["state"] == "fault"]
    assert "config.yaml:" in faults[0]["detail"]
