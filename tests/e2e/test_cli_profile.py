"""`hermes profile` and `hermes config` as a person and a script use them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.e2e.program import hermes
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e

RESEARCH = "Reads source code and documents, and writes research reports"


def test_create_list_show_print_the_description(isolated_home: Path) -> None:
    done = hermes("profile", "create", "researcher", "--description", RESEARCH)
    assert (done.code, done.err) == (0, "")
    row = next(row for row in hermes("profile", "list").rows if row[0] == "researcher")
    assert row[-1] == RESEARCH
    listed = {item["name"]: item for item in hermes("profile", "list", "--json").json}
    assert listed["researcher"]["description"] == RESEARCH
    assert listed["default"]["chosen"] is True
    shown = hermes("profile", "show", "researcher", "--json").json
    assert (shown["description"], shown["own"], shown["keys"]) == (RESEARCH, True, [])
    assert ["description", RESEARCH] in hermes("profile", "show", "researcher").rows
    folder = isolated_home / "profiles" / "researcher"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir() if path.is_file())


@pytest.mark.parametrize(
    "args",
    [
        ["create", "default"],
        ["create", "../../x"],
        ["create", "/abs"],
        ["create", ".."],
        ["create", "a b"],
        ["create", "taken"],
        ["create", "b", "--clone", "nosuch"],
        ["show", "nosuch"],
        ["use", "nosuch"],
        ["describe", "nosuch", "x"],
        ["rename", "nosuch", "x"],
        ["rename", "taken", "default"],
        ["delete", "nosuch", "-y"],
        ["delete", "default", "-y"],
        ["export", "nosuch"],
        ["import", "nosuch.tar.gz"],
    ],
)
def test_f10_6_a_bad_taken_or_unknown_name_is_exit_2(args: list[str], tmp_path: Path, isolated_home: Path) -> None:
    hermes("profile", "create", "taken")
    before = sorted(path.name for path in isolated_home.rglob("*"))
    done = hermes("profile", *args, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert sorted(path.name for path in isolated_home.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


def test_a_shipped_name_makes_an_own_copy_that_wins() -> None:
    before = {item["name"]: item for item in hermes("profile", "list", "--json").json}
    assert before["reviewer"]["own"] is False
    assert hermes("profile", "create", "reviewer").code == 0
    assert hermes("profile", "describe", "reviewer", "mine now").code == 0
    after = hermes("profile", "show", "reviewer", "--json").json
    assert (after["own"], after["description"]) == (True, "mine now")


def test_use_rename_delete() -> None:
    hermes("profile", "create", "a", "--model", "m1")
    assert hermes("profile", "use", "a").code == 0
    assert hermes("config", "get", "model").out == "m1\n"
    assert hermes("profile", "rename", "a", "b").code == 0
    assert hermes("config", "get", "profile").out == "b\n"
    assert hermes("profile", "delete", "b").code == 2
    assert "-y" in hermes("profile", "delete", "b").err
    assert hermes("profile", "delete", "b", "-y").code == 0
    assert [row[0] for row in hermes("profile", "list").rows if row[1] == "own"] == ["default"]


def test_a_profile_that_goes_is_told_for_each_board_and_a_template_takes_its_place(isolated_home: Path) -> None:
    for words in (
        ["profile", "create", "coder"],
        ["profile", "create", "reviewer"],
        ["kanban", "boards", "create", "b"],
    ):
        assert hermes(*words).code == 0
    assert hermes("kanban", "create", "x", "--board", "b", "--assignee", "coder").code == 0
    assert hermes("kanban", "create", "y", "--reviewer", "coder").code == 0
    assert hermes("kanban", "create", "z", "--board", "b", "--assignee", "reviewer").code == 0
    assert hermes("profile", "delete", "coder", "-y").err.splitlines() == [
        "board default: k1 would be judged by it: hermes kanban edit ID --reviewer PROFILE",
        "board b: k1 wait for that profile: hermes kanban assign ID PROFILE",
    ]
    gone = hermes("profile", "delete", "reviewer", "-y")
    assert gone.err == "board b: the shipped profile of that name works k2 now\n"
    assert hermes("kanban", "show", "k2", "--board", "b", "--json").json["reason"].startswith("nobody works this board")


def test_a_board_that_cannot_be_read_keeps_no_other_from_following_a_rename(isolated_home: Path) -> None:
    assert hermes("profile", "create", "a").code == 0
    for board in ("m", "z"):
        assert hermes("kanban", "boards", "create", board).code == 0
        assert hermes("kanban", "create", "x", "--board", board, "--assignee", "a").code == 0
    (isolated_home / "boards" / "m" / "kanban.db").write_bytes(b"another program's")
    done = hermes("profile", "rename", "a", "b")
    assert (done.code, done.out) == (1, "a is called b now\n1 card goes to b now\n")
    assert done.err.startswith("hermes: board m was not looked at: ")
    assert hermes("kanban", "show", "k1", "--board", "z", "--json").json["assignee"] == "b"


@pytest.mark.parametrize(("answer", "left"), [("y", False), ("n", True), ("", True)])
def test_delete_asks_at_a_terminal(answer: str, left: bool, isolated_home: Path) -> None:
    hermes("profile", "create", "a")
    with Terminal("profile", "delete", "a") as terminal:
        terminal.until("[y/")  # where the line ends is up to the length of the home's name
        terminal.line(answer)
        assert terminal.ended() == int(left)
    assert (isolated_home / "profiles" / "a").exists() is left


def test_export_and_import_without_keys(isolated_home: Path, tmp_path: Path) -> None:
    hermes("profile", "create", "a", "--description", "good")
    (isolated_home / "profiles" / "a" / ".env").write_text("OPENAI_API_KEY=sk-very-secret-1\n")
    assert hermes("profile", "show", "a", "--json").json["keys"] == ["OPENAI_API_KEY"]
    done = hermes("profile", "export", "a", "-o", str(tmp_path / "a.tar.gz"))
    assert done.code == 0
    assert hermes("profile", "import", str(tmp_path / "a.tar.gz"), "--name", "c").code == 0
    shown = hermes("profile", "show", "c", "--json").json
    assert (shown["description"], shown["keys"]) == ("good", [])
    bare = hermes("profile", "export", "default", "-o", str(tmp_path / "d.tar.gz"))
    assert (bare.code, (tmp_path / "d.tar.gz").exists()) == (2, False)
    assert "no files of its own" in bare.err


def test_f6_6_clone_takes_no_keys(isolated_home: Path) -> None:
    hermes("profile", "create", "a", "--model", "m1")
    (isolated_home / "profiles" / "a" / ".env").write_text("KEY=x\n")
    assert hermes("profile", "create", "b", "--clone", "a").code == 0
    assert not (isolated_home / "profiles" / "b" / ".env").exists()
    assert hermes("config", "get", "model", "-p", "b").out == "m1\n"


# -- config -------------------------------------------------------------------------------------------------------


def test_config_path_get_set_check(isolated_home: Path) -> None:
    assert hermes("config", "path").out == f"{isolated_home / 'config.yaml'}\n"
    assert hermes("config", "get", "limits.max_turns").out == "90\n"
    assert hermes("config", "get", "delegation.timeout_seconds").out == "900\n"
    assert hermes("config", "set", "limits.max_turns", "40").code == 0
    assert hermes("config", "get", "limits.max_turns", "--json").json == 40
    assert ["limits.max_turns", "40"] in hermes("config", "get").rows
    assert "already" in hermes("config", "set", "limits.max_turns", "40").out
    assert hermes("config", "set", "toolsets", "terminal,file").code == 0
    assert hermes("config", "get", "toolsets", "--json").json == ["terminal", "file"]
    assert hermes("config", "check").code == 0
    assert stat.S_IMODE((isolated_home / "config.yaml").stat().st_mode) == 0o600


def test_f12_5_comments_order_and_unknown_keys_stay(isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("# mine\nlimits:\n  max_turns: 5 # few\nmystery: 1\nmodel: m # best\n")
    assert hermes("config", "set", "model", "n").code == 0
    assert file.read_text() == "# mine\nlimits:\n  max_turns: 5 # few\nmystery: 1\nmodel: n # best\n"


@pytest.mark.parametrize(
    "args", [["config", "set", "model", "x"], ["tools", "disable", "terminal"], ["config", "get"], ["config", "check"]]
)
def test_f6_2_broken_yaml_is_named_with_its_line_and_left_alone(args: list[str], isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("a: 1\nmodel: [unclosed\n")
    before = file.read_bytes()
    done = hermes(*args)
    assert (done.code, done.out) == (2, "")
    assert f"{file}:2" in done.err or f"{file}:3" in done.err
    assert done.err.count("\n") == 1
    assert file.read_bytes() == before


def test_f6_3_unknown_keys_warn_with_the_nearest_and_wrong_types_are_refused(isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("limits:\n  max_turn: 5\n")
    done = hermes("config", "check")
    assert done.code == 0
    assert "max_turns" in done.err
    file.write_text("limits:\n  max_turns: abc\n")
    done = hermes("config", "get", "model")
    assert done.code == 2
    assert f"{file}:2" in done.err
    assert hermes("config", "set", "limits.max_turns", "7").code == 0, "a wrong value can be mended by command"
    file.write_text("- a\n- list\n")
    assert hermes("config", "get").code == 2


def test_rules_that_cannot_be_meant_are_found(isolated_home: Path) -> None:
    isolated_home.mkdir()
    file = isolated_home / "config.yaml"
    file.write_text("approvals:\n  deny: [read_file(secret), todo]\n")
    done = hermes("config", "check")
    assert (done.code, done.out) == (0, f"{file}: 1 warning\n")
    assert done.err.startswith("hermes: the rule 'read_file(secret)' covers nothing: read_file takes no brackets")
    checks = hermes("doctor", "--json", "-m", "demo").json
    assert [item["state"] for item in checks if "read_file(secret)" in item["detail"]] == ["note"]
    file.write_text("approvals:\n  allow: [git push]\n")
    done = hermes("config", "check")
    assert (done.code, done.out) == (2, "")
    assert "'git push' is no rule" in done.err
    checks = hermes("doctor", "--json", "-m", "demo").json
    assert [item["state"] for item in checks if "git push" in item["detail"]] == ["fault"]


def test_a_value_or_key_that_cannot_be_is_exit_2(isolated_home: Path) -> None:
    for args in (["limits.max_turns", "0"], ["limits.max_turn", "5"], ["approvals.mode", "wild"], ["toolsets", "no"]):
        done = hermes("config", "set", *args)
        assert (done.code, done.out) == (2, ""), args
    assert "max_turns" in hermes("config", "get", "limits.max_turn").err
    assert not (isolated_home / "config.yaml").exists()


def test_config_of_a_profile_goes_into_its_own_file(isolated_home: Path) -> None:
    hermes("profile", "create", "a")
    assert hermes("config", "set", "model", "m9", "-p", "a").code == 0
    assert "m9" in (isolated_home / "profiles" / "a" / "config.yaml").read_text()
    assert hermes("config", "get", "model").out != "m9\n"
    assert hermes("config", "get", "model", HERMES_PROFILE="a").out == "m9\n"


def test_a_password_in_an_address_is_not_printed() -> None:
    hermes("config", "set", "base_url", "http://user:very-secret-word@127.0.0.1:9/v1")
    assert "very-secret-word" not in hermes("config", "get").out + hermes("config", "get", "base_url").out
    hermes("config", "set", "base_url", "http://user:short@127.0.0.1:9/v1")
    hermes("config", "set", "provider.extra_body", "{api_key: sk-of-the-body}")
    asked = (("config", "get"), ("profile", "show"), ("profile", "show", "--json"), ("doctor", "--probe"))
    for args in asked:
        told = hermes(*args).out
        assert "http://…@127.0.0.1:9/v1" in told
        assert "short" not in told
        assert "sk-of-the-body" not in told
