"""The local model's server as a process: whose port file counts, and how a start that fails is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_engine.clients import local_process
from hermes_engine.clients.local_port import Running, read_running
from hermes_engine.clients.local_process import ensure, find, log_file, port_file
from hermes_engine.errors import EndpointDown
from hermes_engine.paths import Home
from hermes_engine.settings.local_model import LocalModel
from hermes_engine.store.instances import Identity, this_boot, this_process


@pytest.fixture
def home(isolated_home: Path) -> Home:
    """The test's home, made."""
    return Home(isolated_home).ensure()


def test_only_the_file_of_a_living_process_counts(home: Home) -> None:
    me = this_process()
    for identity, counts in (
        (me, True),
        (Identity(me.boot, me.pid, "1"), False),
        (Identity("another boot", me.pid, me.birth), False),
        (Identity(this_boot(), 2**22 + 1, ""), False),
    ):
        port_file(home).write_text(Running(identity, 8).as_json())
        assert (find(home) == Running(identity, 8)) is counts, identity
    assert Running(me, 8).base_url == "http://127.0.0.1:8/v1"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"boot": 1}', '{"boot": "", "pid": "x", "birth": "", "port": 1}', "7"]
)
def test_a_file_that_says_nothing_is_no_server(home: Home, text: str) -> None:
    port_file(home).write_text(text)
    assert read_running(port_file(home)) is None
    assert find(home) is None


def test_a_start_that_fails_says_where_the_words_are(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(home.root / "nosuch.gguf", {})
    monkeypatch.setattr(local_process, "installed", lambda: model)
    dead = Running(Identity(this_boot(), os.getpid(), "1"), 8)
    port_file(home).write_text(dead.as_json())
    with pytest.raises(EndpointDown, match="ended as it began") as caught:
        ensure(home)
    assert str(log_file(home)) in caught.value.hint
    assert log_file(home).read_text(), "it says what was wrong"
    assert json.loads(port_file(home).read_text())["birth"] == "1"


def test_taken_away_since_it_was_chosen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_process, "installed", lambda: None)
    with pytest.raises(EndpointDown, match="not installed any more"):
        ensure(home)


def test_the_state_folder_holds_the_port_file(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_STATE_DIR", str(tmp_path))
    assert port_file(home) == tmp_path / "local-model.json"
