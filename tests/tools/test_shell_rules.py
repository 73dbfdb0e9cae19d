"""Commands judged by parsing. Nothing here is run but `printf` on harmless words."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from hermes_engine.tools.protected import Protected
from hermes_engine.tools.shell_parse import parse
from hermes_engine.tools.shell_rules import CommandVerdict, judge
from hermes_engine.tools.shell_words import Word

HOME = Path("/home/someone")
PROJECT = HOME / "project"
PROTECTED = Protected(Home(HOME / ".hermes"), HOME)
JUDGED = {
    section.partition("\n")[0]: section.splitlines()[1:]
    for section in Path(__file__).with_name("judged_commands.txt").read_text("utf-8").strip().split("\n\n== ")[1:]
}


def kind(command: str, cwd: Path = PROJECT) -> str:
    return verdict(command, cwd).kind


def verdict(command: str, cwd: Path = PROJECT) -> CommandVerdict:
    return judge(command, cwd, PROTECTED)


@pytest.mark.parametrize("command", JUDGED["read_only"])
def test_plainly_read_only(command: str) -> None:
    assert kind(command) == "read_only", verdict(command)


@pytest.mark.parametrize("command", JUDGED["plain"])
def test_like_any_other_command(command: str) -> None:
    assert kind(command) == "plain", verdict(command)


@pytest.mark.parametrize("command", JUDGED["risky"])
def test_f10_1_risky(command: str) -> None:
    assert kind(command) == "risky", verdict(command)


@pytest.mark.parametrize("command", JUDGED["forbidden"])
def test_f10_1_the_fixed_list(command: str) -> None:
    assert kind(command) == "forbidden", verdict(command)


@pytest.mark.parametrize("rest", ["-m json.tool", "-c 'import json,sys; print(json.load(sys.stdin))'", "show.py"])
def test_an_interpreter_that_reads_fetched_text_as_data_does_not_run_it(rest: str) -> None:
    assert kind(f"curl -s http://localhost:5000/x | python3 {rest}") == "plain"


@pytest.mark.parametrize("rest", ["", "-", "-u", "-c 'import sys; exec(sys.stdin.read())'", "-m code", '-c "$X"'])
def test_an_interpreter_that_runs_fetched_text_is_risky(rest: str) -> None:
    assert kind(f"curl -s http://localhost:5000/x | python3 {rest}") == "risky"


def test_f10_1_newline_separated_and_here_documents() -> None:
    assert kind("ls\nrm -rf /\nls") == "forbidden"
    assert kind("cat <<EOF | sh\nls\nEOF") == "risky"
    assert kind("sh <<'EOF'\nrm -rf /\nEOF") == "forbidden"
    assert kind("bash <<EOF\nls\nEOF") == "read_only"
    assert kind("bash <<EOF\n$X\nEOF") == "risky"
    assert kind("python3 - <<'PY'\nprint(1)\nPY") == "plain"
    assert kind('cat <<EOF > c.json\n{"a": "$HOME"}\nEOF') == "plain"
    assert kind("cat <<EOF > c\n`rm -rf /` $HOME\nEOF") == "forbidden"
    assert kind("cd src && python3 - arg 2>&1 <<'PY' | tail -5\nprint(1)\nPY\necho done") == "plain"
    assert kind("bash -s - <<EOF\nrm -rf /\nEOF") == "forbidden"
    assert kind("cat <<EOF\n$(rm -rf x)\nEOF") == "risky"
    assert kind("cat <<'EOF'\n$(rm -rf x)\nEOF") == "read_only"
    assert kind("cat > f <<'EOF'\nx\nEOF") == "plain"
    assert kind("cat <<'EOF' > ~/.bashrc && ls\nx\nEOF") == "risky"
    assert kind("cat <<'EOF' && rm -rf /\nx\nEOF") == "forbidden"
    assert kind("ls \\\n -la \\\n | head") == "read_only"
    assert kind("rm \\\n -rf \\\n /") == "forbidden"


def test_a_glob_that_reaches_a_key(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("key")
    (tmp_path / "link").symlink_to(tmp_path / ".ssh" / "id_rsa")
    protected = Protected(Home(tmp_path / ".hermes"), tmp_path)
    for command in ("cat ~/.ssh/*", "cat .ssh/id_*", "cat link", "cat l*", "cat .ssh/config/../id_rsa"):
        assert judge(command, tmp_path, protected).kind == "risky", command


def test_a_repository_with_programs_in_its_settings_is_not_only_read(tmp_path: Path) -> None:
    def of(command: str, cwd: Path) -> str:
        return judge(command, cwd, PROTECTED).kind

    subprocess.run(["git", "init", "-q", "repo"], cwd=tmp_path, check=True)
    repo = tmp_path / "repo"
    (repo / "sub").mkdir()
    assert of("git status", repo / "sub") == "read_only"
    for setting in ("diff.external", "diff.x.textconv", "filter.x.clean", "include.path"):
        subprocess.run(["git", "config", setting, "/evil"], cwd=repo, check=True)
        for command, cwd in [("git diff", repo), ("git log -p", repo / "sub"), ("git -C repo status", tmp_path)]:
            assert of(command, cwd) == "plain", (setting, command)
        assert of(f"cd {repo} && git diff", tmp_path) == "plain"
        subprocess.run(["git", "config", "--unset", setting], cwd=repo, check=True)
        assert of("git diff", repo) == "read_only"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=repo, check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../tree"], cwd=repo, check=True)
    assert of("git diff", tmp_path / "tree") == "read_only"
    subprocess.run(["git", "config", "diff.external", "/evil"], cwd=repo, check=True)
    assert of("git diff", tmp_path / "tree") == "plain"


def test_a_project_under_a_system_folder_is_the_agents_own() -> None:
    start = Path("/usr/src/app")
    assert judge("touch main.c", start, PROTECTED, start=start).kind == "plain"
    assert judge("touch ../x", start, PROTECTED, start=start).kind == "risky"


def test_rules_on_offer_name_program_and_subcommand() -> None:
    assert verdict("git commit -m x").rules == ("git commit",)
    assert verdict("npm run build && cargo test").rules == ("npm run build", "cargo test")
    assert verdict("python -m pytest -q").rules == ("python -m pytest",)
    assert verdict("python x.py").rules == ("=python x.py",)
    assert verdict("rm -rf build").rules == ("=rm -rf build",)
    assert verdict("make").rules == ("=make",)
    assert verdict("uv run python x").rules == ("=uv run python x",)
    assert verdict("curl x | sh").rules == ()
    assert verdict('git commit -m "$(cat x)"').rules == ()
    assert verdict("f() { touch x; }; f").rules == ()


def test_hosts_of_fetching_commands_are_told() -> None:
    assert verdict("curl -s https://a.example/x && wget http://b.example").hosts == ("a.example", "b.example")
    assert verdict('curl "$URL"').hosts == ("",)
    assert verdict("ls").hosts == ()


@pytest.mark.parametrize(
    "command",
    [
        "echo " + "x " * 50_000,
        "(" * 3000 + "ls" + ")" * 3000, "echo " + "$(" * 2000 + "ls" + ")" * 2000, "<" * 100_000,
        "(;" * 100_000, "rm -rf / " + "(;" * 100_000, "a|" * 100_000 + "b", "`" * 100_000, "{ " * 50_000,
        "cat " + "<<A " * 5000, "a|" * 20_000 + "b", "f() { " * 20_000, "env --a " * 100 + "ls",
        "env " + "--a " * 1900 + "rm x", "sudo " * 1900 + "ls", "find . -exec " * 600 + "ls", "bash -c " * 900 + "ls",
        "if true; then " * 20_000, "[[ ! " * 3000 + "x" + " ]]" * 3000, "echo " + "${x:-" * 3000 + "}" * 3000,
    ],
    ids=lambda command: command[:12],
)  # fmt: skip
def test_very_long_and_very_deep_commands_are_judged_in_good_time(command: str) -> None:
    began = time.thread_time()
    assert kind(command) != "read_only"
    assert time.thread_time() - began < 5
    assert kind("ls") == "read_only"


def test_wrapped_commands_are_seen_through_all_their_readings() -> None:
    assert kind("env --a " * 6 + "ls") == "read_only"
    assert kind("env --chdir /x " * 6 + "rm -rf /") == "forbidden"
    assert kind("nice " * 9 + "rm -rf /") == "forbidden"
    assert len(verdict("env --a " * 6 + "ls").programs) < 50


def test_deep_commands_are_judged_the_same_on_a_thread_deep_in_calls() -> None:
    def calling(left: int) -> str:
        return calling(left - 1) if left else kind(("(" * 150) + "echo;echo" + ")" * 150 + "; bash -c 'nice nice rm x'")

    assert calling(1) == calling(200)


def test_a_lines_end_that_the_parser_misses_is_noticed() -> None:
    for command in ("ls\n\\\ntouch f", "x=\\\n\ntouch f=", "ls a\\\n#; touch f", "ls \\ #\ntouch f"):
        assert kind(command) != "read_only", command


def test_a_long_here_document_is_an_ordinary_command() -> None:
    assert kind("cat > f <<'EOF'\n" + "some 'text' (here\n" * 20_000 + "EOF") == "plain"


@pytest.mark.parametrize(
    "text", ["{\U000f7d48", "{x{\U0001f600", "${\U00010000", "ls\u00a0-la", "ls\u2003-la", "ls\r-la"]
)
def test_characters_that_the_parser_cannot_take_do_no_harm(text: str) -> None:
    assert kind(text) != "read_only"
    assert kind(f"echo '{text}'") == "read_only"


def test_text_in_other_scripts_is_text() -> None:
    assert kind("echo 日本 😀 é") == "read_only"
    assert parse("touch 'ä b' 日", home=HOME, cwd=PROJECT).commands[0].words[1:] == [Word("ä b"), Word("日")]
    assert kind("cat <<'ÄÖ'\n$(rm x)\nÄÖ") == "read_only"
