"""The registry: what a line means, what is proposed, that every command is whole."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.commands import GROUPS, Invocation, PlainText, Unknown, commands, find, parse
from hermes_tui.commands.registry import _complete_name

THIS_VERSION = [
    "help",
    "new",
    "model",
    "mode",
    "tools",
    "toolsets",
    "profile",
    "batch",
    "agents",
    "tasks",
    "stop",
    "steer",
    "queue",
    "retry",
    "sessions",
    "resume",
    "rename",
    "fork",
    "rewind",
    "compact",
    "context",
    "usage",
    "copy",
    "theme",
    "keys",
    "settings",
    "init",
    "export",
    "doctor",
    "clear",
    "status",
    "quit",
]
WORKS_WHILE_BUSY = [
    "background",
    "bg",
    "spawn",
    "tasks",
    "attach",
    "stop",
    "steer",
    "agents",
    "help",
    "usage",
    "context",
    "status",
    "sessions",
    "copy",
    "export",
    "doctor",
    "settings",
    "keys",
    "quit",
]


@pytest.mark.parametrize("name", THIS_VERSION)
def test_every_command_of_this_version_is_registered(name: str) -> None:
    assert find(name) is not None


@pytest.mark.parametrize("name", WORKS_WHILE_BUSY)
def test_read_only_commands_work_while_a_turn_runs(name: str) -> None:
    found = find(name)
    assert found is not None
    assert found.while_busy


def test_every_command_has_a_group_and_one_line_of_help() -> None:
    for command in commands():
        assert command.group in GROUPS
        assert command.help.strip()
        assert "\n" not in command.help
        assert len(command.usage) + len(command.help) < 110, command.usage


def test_commands_stand_in_the_order_of_the_groups() -> None:
    order = [GROUPS.index(command.group) for command in commands()]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("/help", "help", ""),
        ("/HELP", "help", ""),
        ("/?", "help", ""),
        ("/steer  look at a.py ", "steer", "look at a.py"),
        ("/steer two\nlines", "steer", "two\nlines"),
        ("/q", "quit", ""),
        ("/model\tdemo", "model", "demo"),
    ],
)
def test_commands_are_parsed(text: str, name: str, args: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Invocation)
    assert (parsed.command.name, parsed.args) == (name, args)


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts is wrong, mend it",
        "/home",
        "/tmp is full",
        "//",
        "// a comment",
        "/notes.txt does not exist",
        "/1 of 2",
        " /help",
        "hello /help",
        "",
        "a/b",
    ],
)
def test_a_path_and_other_text_is_text(text: str) -> None:
    assert parse(text) == PlainText(text)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("/statsu", "status"), ("/halp", "help"), ("/sessionz list", "sessions"), ("/exti", "quit"), ("/", "")],
)
def test_an_unknown_command_names_the_nearest(text: str, nearest: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Unknown)
    assert parsed.nearest == nearest


@given(st.text(alphabet=string.printable + "é/ \u2028", max_size=40))
def test_parsing_takes_any_text_and_never_changes_what_is_text(text: str) -> None:
    parsed = parse(text)
    if isinstance(parsed, PlainText):
        assert parsed.text == text
    elif isinstance(parsed, Invocation):
        assert text.startswith("/")
        assert parsed.args in text
    else:
        assert text.startswith("/")


def test_names_are_completed_beginning_first_aliases_without_a_row() -> None:
    proposed = [item.text for item in _complete_name("s")]
    assert proposed[0] in ("/stop", "/steer", "/sessions", "/status", "/settings")
    assert "/sessions" in proposed
    assert [item.text for item in _complete_name("exi")] == ["/quit"]
    assert "/exit" not in [item.text for item in _complete_name("")]
    assert len(_complete_name("")) == len(commands())


def test_completion_says_what_a_command_does() -> None:
    (found,) = _complete_name("compact")
    assert found.start == 0
    assert "Shorten" in found.help


def test_a_command_wins_over_a_folder_of_its_name() -> None:
    assert not Path("/help").exists()
    assert isinstance(parse("/help"), Invocation)
