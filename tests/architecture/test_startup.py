"""What starting up loads, proved in fresh processes by modules, not by time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from hermes_engine.store.migrations import open_state

SIX = {"textual", "prompt_toolkit", "openai", "pydantic", "yaml", "rich"}
ROOT = Path(__file__).parents[2]


def loaded(code: str, *, cwd: Path, **env: str) -> set[str]:
    """Top-level names of modules, and ours in full, that a fresh process has loaded after `code`."""
    script = f"import sys, json\n{code}\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stderr.rsplit("\n", 1)[1])
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("hermes")}


def run(*args: str) -> str:
    """Code that runs a command line in this process."""
    return f"from hermes_tui.cli import main\ncode = main({list(args)!r})\nassert code == 0, code"


@pytest.mark.parametrize("args", [("--version",), ("-V",)])
def test_version_loads_none_of_the_six_and_no_click(args: tuple[str, ...], tmp_path: Path) -> None:
    modules = loaded(run(*args), cwd=tmp_path)
    assert not modules & (SIX | {"click", "asyncio", "sqlite3", "logging"})
    ours = {name for name in modules if name.startswith("hermes_engine.")}
    assert ours <= {"hermes_engine.errors", "hermes_engine.cleaning"}


def test_version_costs_little_processor_time(tmp_path: Path) -> None:
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "hermes_tui.cli", "--version"], check=True, cwd=ROOT, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) <= 0.15


def test_help_imports_no_command(tmp_path: Path) -> None:
    modules = loaded(run("--help"), cwd=tmp_path)
    assert not modules & SIX
    assert not modules & {f"hermes_tui.cli.{name}" for name in ("chat", "batch", "tools", "profile", "sessions")}


@pytest.mark.parametrize("module", ["hermes_engine.session", "hermes_engine.assembly", "hermes_engine.batch.runner"])
def test_the_engine_loads_no_screen_and_no_client(module: str, tmp_path: Path) -> None:
    modules = loaded(f"import {module}", cwd=tmp_path)
    assert not modules & {"textual", "prompt_toolkit", "rich", "hermes_tui", "openai", "click"}


@pytest.mark.parametrize("module", ["hermes_tui.commands", "hermes_tui.printing.lines", "hermes_tui.printing.records"])
def test_commands_and_printing_load_no_toolkit(module: str, tmp_path: Path) -> None:
    code = f"import {module}\nfrom hermes_tui.commands import commands\ncommands()"
    assert not loaded(code, cwd=tmp_path) & {"textual", "prompt_toolkit", "rich", "openai"}


def test_the_plain_shell_loads_no_textual(tmp_path: Path) -> None:
    modules = loaded("import hermes_tui.repl.editor, hermes_tui.repl.plain", cwd=tmp_path)
    assert "prompt_toolkit" in modules
    assert not modules & {"textual", "openai"}


def test_plain_lines_load_no_line_editor(tmp_path: Path) -> None:
    assert not loaded("import hermes_tui.repl.plain", cwd=tmp_path) & {"textual", "prompt_toolkit"}


def test_a_one_shot_loads_neither_toolkit(tmp_path: Path) -> None:
    modules = loaded(run("chat", "-q", "hello", "-m", "demo"), cwd=tmp_path)
    assert not modules & {"textual", "prompt_toolkit"}
    assert "hermes_engine.session.engine" in modules


def test_a_one_shot_on_the_demo_model_loads_no_client_library(tmp_path: Path) -> None:
    assert not loaded(run("chat", "-q", "hello", "-m", "demo"), cwd=tmp_path) & {"openai", "aiohttp"}


def test_tasks_that_are_kept_are_listed_without_an_engine(tmp_path: Path) -> None:
    assert "hermes_engine.store.agents" not in loaded(run("tasks", "list"), cwd=tmp_path)
    open_state(Home.from_env().ensure().state_db).close()
    modules = loaded(run("tasks", "list"), cwd=tmp_path)
    assert "hermes_engine.store.agents" in modules
    assert not modules & {"textual", "prompt_toolkit", "openai", "aiohttp", "yaml", "hermes_engine.session"}


def test_a_batch_run_loads_no_textual(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "hello"}\n')
    args = ["batch", "run", "--dataset_file", "p.jsonl", "--run_name", "r", "--model", "demo", "--batch_size", "1"]
    code = f"from hermes_tui.cli import main\nmain({args!r})"
    modules = loaded(code, cwd=tmp_path)
    assert "hermes_engine.batch.runner" in modules
    assert not modules & {"textual", "prompt_toolkit"}


@pytest.mark.parametrize(
    "verb",
    [
        ("tools", "list"),
        ("profile", "list"),
        ("config", "get"),
        ("sessions", "list"),
        ("tasks", "list"),
        ("kanban", "list"),
    ],
)
def test_listing_verbs_load_no_engine(verb: tuple[str, ...], tmp_path: Path) -> None:
    modules = loaded(run(*verb), cwd=tmp_path)
    assert not modules & {"textual", "prompt_toolkit", "openai", "aiohttp", "hermes_engine.session"}
    if verb[0] != "tools":
        assert "asyncio" not in modules
