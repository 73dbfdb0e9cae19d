"""The command line's border: exit codes, one line of error, no traceback, quiet when the reader leaves."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from hermes_engine import __version__
from tests.conftest import Serve
from tests.e2e.program import COMMAND, ROOT, environment, hermes
from tests.server.scripted import say

pytestmark = pytest.mark.e2e


def test_version() -> None:
    done = hermes("--version")
    assert (done.code, done.out, done.err) == (0, f"hermes {__version__}\n", "")
    assert hermes("-V").out == done.out
    assert hermes("-p", "default", "--version").out == done.out


COMMANDS = ["chat", "repl", "batch", "tools", "profile", "sessions", "kanban", "tasks", "config", "local", "doctor"]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_in_the_order_of_use(flag: str) -> None:
    done = hermes(flag)
    assert done.code == 0
    listed = [line.split()[0] for line in done.out.split("Commands:")[1].splitlines() if line.strip()]
    assert listed == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    for flag in ("-h", "--help"):
        done = hermes(command, flag)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("Usage: hermes")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--nosuch"], "--nosuch"),
        (["nosuch"], "unknown command 'nosuch'"),
        (["profil", "list"], "did you mean profile?"),
        (["kanban", "run", "--once"], "the toolset kanban is not enabled — hermes tools enable kanban"),
        (["tasks", "show", "x"], "there is no task 'x'"),
        (["sessions", "search"], "WORDS"),
        (["sessions", "fork", "x"], "there is no session 'x'"),
        (["tools"], "needs a verb"),
        (["kanban"], "stats, plan, run, boards — see hermes kanban -h"),
        (["profile", "create"], "NAME"),
        (["chat", "-q"], "-q"),
        (["chat", "hello"], "a prompt goes in quotes behind -q — hermes chat -q hello"),
        (["chat", "-q", "fix", "the", "bug"], "hermes chat -q 'fix the bug'"),
        (["chat", "-q", "x", "--mode", "wild"], "--mode"),
        (["chat", "-q", "x", "--max-turns", "0"], "--max-turns"),
        (["chat", "-q", "x", "--max-turns", "abc"], "--max-turns"),
        (["chat", "-q", "x", "--json", "--stream-json"], "cannot be combined"),
        (["--continue", "chat", "-q", "x", "--resume", "y"], "cannot be combined"),
        (["chat", "-q", "x", "--base-url", "http://127.0.0.1:9/v1?a=b"], "is not a server's address"),
        (["--linear", "tools", "list"], "--linear means nothing"),
        (["-p", "nosuch", "config", "get"], "unknown profile 'nosuch'"),
        (["-t", "nosuch", "chat", "-q", "x"], "unknown toolset 'nosuch'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(args: list[str], says: str) -> None:
    done = hermes(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith("hermes: ")
    assert says in done.err


def test_help_as_a_word() -> None:
    assert hermes("help").out == hermes("-h").out
    assert hermes("help", "profile", "create").out == hermes("profile", "create", "-h").out
    assert "help" not in hermes("nosuch").err.split("valid:")[1]


def test_kanban_is_named_only_where_it_is_enabled(tmp_path: Path) -> None:
    done = hermes("chat", "-q", "hi", "-m", "demo", "-t", "file,kanban", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "hermes tools enable kanban" in done.err
    hermes("tools", "enable", "kanban")
    assert hermes("chat", "-q", "hi", "-m", "demo", "-t", "file,kanban", cwd=tmp_path).code == 0


def test_a_current_folder_that_is_gone_is_said_plainly(tmp_path: Path) -> None:
    command = f'mkdir gone && cd gone && rmdir ../gone && "{COMMAND[0]}" -m hermes_tui.cli chat -q hi -m demo'
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment(), cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hermes: the current folder is gone — go to one that exists\n"


def test_a_flag_is_spelled_either_way(tmp_path: Path) -> None:
    for spelling in ("--base-url", "--base_url"):
        done = hermes("doctor", spelling, "http://127.0.0.1:9/v1", "-m", "m", "--json")
        assert any("http://127.0.0.1:9/v1" in item["detail"] for item in done.json)
    for spelling in ("--stream-json", "--stream_json"):
        assert "cannot be combined" in hermes("chat", "-q", "x", "--json", spelling).err


def test_a_value_that_looks_like_a_flag_is_left_alone() -> None:
    done = hermes("profile", "create", "a", "--description", "--some_thing like_this")
    assert done.code == 0
    assert hermes("profile", "show", "a", "--json").json["description"] == "--some_thing like_this"


def test_common_flags_stand_before_or_after_the_command() -> None:
    hermes("profile", "create", "coder")
    for args in (["-p", "coder", "config", "path"], ["config", "path", "-p", "coder"]):
        assert hermes(*args).out.endswith("/profiles/coder/config.yaml\n")


def test_f8_11_a_reader_that_leaves_early_is_no_error() -> None:
    for number in range(30):
        hermes("profile", "create", f"p{number}")
    pipe = subprocess.run(
        ["bash", "-c", f'"{COMMAND[0]}" -m hermes_tui.cli profile list | head -1; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert pipe.stderr == ""
    assert pipe.stdout.splitlines()[0].startswith("default\t")


@pytest.mark.parametrize("command", ["config get", "profile list", "--version", "--help", "batch run -h"])
def test_what_a_closed_standard_output_took_is_told(command: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{COMMAND[0]}" -m hermes_tui.cli {command} >&-'],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "hermes: cannot write to standard output: it is closed\n")


BATCH = "batch run --dataset_file d.jsonl --batch_size 2 -m demo"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "args",
    ["--version", "--help", "batch run -h", "config get", "profile list", "doctor --json", "chat -q hi -m demo",
     "chat -q hi -m demo --json", "chat -q hi -m demo --stream-json", f"{BATCH} --run_name a --plain",
     f"{BATCH} --run_name a --json", "batch export kept"],
)  # fmt: skip
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path, args: str, unbuffered: str) -> None:
    (tmp_path / "d.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    if "kept" in args:
        hermes(*f"{BATCH} --run_name kept".split(), cwd=tmp_path)
    done = subprocess.run(
        ["bash", "-c", f'"{COMMAND[0]}" -m hermes_tui.cli {args} > /dev/full'],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(PYTHONUNBUFFERED=unbuffered),
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "hermes: cannot write to standard output: No space left on device"
    assert "Traceback" not in done.stderr
    if "batch run" in args and "-h" not in args:
        assert hermes("batch", "show", "a", "--json", cwd=tmp_path).json["state"] == "done"


def test_a_run_whose_reader_leaves_goes_on_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"prompt": "one"}\n' * 20)
    run = f"{BATCH} --run_name a --json"
    done = subprocess.run(
        [
            "bash",
            "-c",
            f'"{COMMAND[0]}" -m hermes_tui.cli {run} | head -1; exit ${{PIPESTATUS[0]}}',
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (1, 1, "")
    assert hermes("batch", "show", "a", "--json", cwd=tmp_path).json["state"] == "done"


def test_an_answer_with_no_place_to_go_is_not_asked_for(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("lost")])
    flags = f"--base-url {server.base_url} -m m"
    for form in ("", "--json", "--stream-json"):
        done = subprocess.run(
            ["bash", "-c", f'"{COMMAND[0]}" -m hermes_tui.cli chat -q x {flags} {form} >&-'],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr == "hermes: standard output is closed: there is no place for the answer\n"
    assert server.requests == []


def test_closed_streams_give_their_numbers_to_no_file(tmp_path: Path) -> None:
    code = "import os; from hermes_tui.printing.streams import prepare; prepare(); print(os.open('f', os.O_CREAT))"
    line = f'"{COMMAND[0]}" -c "{code}" <&- 2>&-'
    done = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, cwd=tmp_path, env=environment(), check=False)
    assert int(done.stdout) > 2


def test_an_unforeseen_fault_is_one_line_that_names_a_private_log(isolated_home: Path) -> None:
    code = "import hermes_tui.cli.root as root, sys\nroot.invoke = lambda args: 1 / 0\n"
    script = f"{code}from hermes_tui.cli import main\nsys.argv = ['hermes', 'doctor']\nmain()"
    old = os.umask(0)
    try:
        done = subprocess.run(
            [COMMAND[0], "-c", script], capture_output=True, text=True, env=environment(), cwd=ROOT, check=False
        )
    finally:
        os.umask(old)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    log = isolated_home / "logs" / "hermes.log"
    assert str(log) in done.stderr
    assert "ZeroDivisionError" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT_IMPORT_OF"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
"""As `sitecustomize`: Ctrl+C at the very moment a module is loaded."""


@pytest.mark.parametrize(
    ("module", "command"),
    [
        *[
            (module, ("-m", "hermes_tui.cli", *args))
            for args in (("doctor",), ("--version",))
            for module in ("hermes_tui.cli.border", "hermes_engine.errors", "hermes_tui.printing.streams")
        ],
        *[
            (module, ("-m", "hermes_tui.cli", "config", "path"))
            for module in ("hermes_tui.cli.root", "click", "hermes_tui.cli.flags", "hermes_tui.cli.config")
        ],
        *[(module, ("batch_runner.py",)) for module in ("importlib.util", "hermes_tui.cli", "click", "pydantic")],
    ],
)
def test_ctrl_c_while_the_program_loads_ends_it_silently(tmp_path: Path, module: str, command: tuple[str, ...]) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    done = subprocess.run(
        [COMMAND[0], *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", AT_IMPORT_OF=module),
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    for command in (["-m", "hermes_tui.cli", "--version"], ["batch_runner.py", "--list_distributions"]):
        done = subprocess.run(
            ["nohup", "bash", "-c", 'trap "" INT; exec "$@"', "bash", COMMAND[0], *command],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", AT_IMPORT_OF="hermes_tui.printing.streams"),
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("stdin", ["", "   \n\n"])
def test_f12_10_the_app_does_not_start_into_a_pipe(stdin: str) -> None:
    done = hermes(stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "terminal" in done.err


def test_standard_input_closed_is_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{COMMAND[0]}" -m hermes_tui.cli <&- | cat'],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "terminal" in done.stderr


@pytest.mark.parametrize("command", ["sessions list", "profile list", "config set model m", "chat -q x -m demo"])
def test_a_home_that_is_a_file_is_wrong_in_every_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "home").write_text("mine")
    done = hermes(*command.split(), HERMES_HOME=str(tmp_path / "home"))
    assert (done.code, done.out) == (2, "")
    assert done.err == f"hermes: the home {tmp_path / 'home'} is not a folder — HERMES_HOME names another\n"


@pytest.mark.parametrize("command", ["sessions list", "tools list", "chat -q x -m demo"])
def test_a_home_below_a_file_is_wrong_in_every_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "home").write_text("mine")
    done = hermes(*command.split(), HERMES_HOME=str(tmp_path / "home" / "below"))
    assert (done.code, done.out) == (2, "")
    assert done.err == f"hermes: the home {tmp_path / 'home' / 'below'} is not a folder — HERMES_HOME names another\n"


NOBODY = """
import os, sys
os.environ.pop("HOME")
os.getuid = lambda: 4_242_424
sys.argv = ["hermes", *sys.argv[1:]]
from hermes_tui.cli import main
sys.exit(main())
"""
"""The program as a user whom the system does not know, without HOME, as containers start programs."""


def test_a_user_without_a_home_is_told_what_to_set(tmp_path: Path) -> None:
    for args in (["config", "path"], ["sessions", "list"], ["chat", "-q", "x", "-m", "demo"]):
        done = hermes("-c", NOBODY, *args, command=COMMAND[:1], HERMES_HOME="")
        assert (done.code, done.out) == (2, "")
        assert done.err == "hermes: there is no home folder: HOME is not set — set HOME, or HERMES_HOME\n"
    done = hermes("-c", NOBODY, "chat", "-q", "hi", "-m", "demo", command=COMMAND[:1], cwd=tmp_path)
    assert (done.code, done.out.startswith("_demo model")) == (0, True)


def test_the_lines_of_a_group_are_whole_sentences() -> None:
    for group in ("", "batch", "config", "kanban", "profile", "sessions", "tasks", "tools", "local"):
        text = " ".join(hermes(*group.split(), "--help").out.partition("Commands:")[2].split())
        assert text.endswith(".")
        assert not re.search(r"\.\.|e\.g\.", text), text
