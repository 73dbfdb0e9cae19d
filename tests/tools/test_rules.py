"""Rules that a person writes or remembers: what they cover, and what slips through none of them."""

from __future__ import annotations

import pytest

from hermes_engine.errors import ConfigError
from hermes_engine.tools.rules import parse_rule, parse_rules, without_effect
from hermes_engine.toolsets import TOOLSETS
from tests.tools.conftest import MakeHands


@pytest.mark.parametrize(
    ("allow", "command", "runs"),
    [
        ("terminal(git init)", "git init -q .", True),
        ("terminal(git init)", "git init . && git add .", False),
        ("terminal(git init *)", "git init", True),
        ("terminal(git init)", "'git' \"init\"", True),
        ("terminal(git init)", "/usr/bin/git init", True),
        ("terminal(git init)", "./git init", False),
        ("terminal(git init)", "X=1 git init", False),
        ("terminal(git)", "git push --force", False),
        ("terminal(=git push --force)", "git push --force", True),
        ("terminal(=git push --force)", "git push --force origin", False),
        ("terminal(touch *)", "touch a b", True),
        ("terminal(touch a*)", "touch abc", True),
        ("terminal(touch a*)", "touch bcd", False),
        ("terminal(touch)", "touch x > y", False),
        ("terminal(touch)", "touch ~/.bashrc", False),
        ("terminal(touch)", "touch x; touch y", True),
        ("terminal(touch)", "touchy x", False),
        ("terminal(touch)", "echo touch", True),
        ("terminal", "touch x && mkdir y", True),
        ("terminal", "rm -rf x", False),
        ("terminal(bash)", "echo x | bash", False),
        ("terminal(sh)", "sh <<< 'touch x'", False),
        ("terminal(touch)", "touch x; " + "(" * 250 + "mkdir y" + ")" * 250, False),
        ("terminal(touch)", "touch x; (mkdir y", False),
        ("terminal(touch)", "touch x; [[ -v 'y[$(mkdir y)]' ]]", False),
    ],
)
async def test_allow_rules_match_parsed_commands(make_hands: MakeHands, allow: str, command: str, runs: bool) -> None:
    result = await make_hands("ask", allow=[allow]).call("terminal", command=command)
    assert (result.status != "denied") is runs, result.text


@pytest.mark.parametrize(
    ("deny", "command"),
    [
        ("terminal(git push)", "git push origin"),
        ("terminal(git push)", "true && sudo git push"),
        ("terminal(git push)", "bash -c 'git push'"),
        ("terminal(git push)", "echo $(git push)"),
        ("terminal(git push)", "X=1 env Y=2 git push"),
        ("terminal(ls)", "ls -la"),
        ("terminal(curl)", "xargs curl"),
        ("terminal", "ls"),
    ],
)
async def test_deny_rules_reach_what_is_wrapped_and_beat_allow(make_hands: MakeHands, deny: str, command: str) -> None:
    result = await make_hands("yolo", allow=["terminal"], deny=[deny]).call("terminal", command=command)
    assert (result.status, "refused by the rule" in result.text) == ("denied", True)


async def test_rules_for_files(make_hands: MakeHands) -> None:
    hands = make_hands("ask", allow=["edit(src/**)", "edit(*.md)"], deny=["edit(src/keep/**)"])
    for path, runs in [
        ("src/a", True),
        ("src/b/c", True),
        ("x.md", True),
        ("d/x.md", False),
        ("y", False),
        ("src/keep/z", False),
    ]:
        result = await hands.call("write_file", path=path, content="x")
        assert result.ok is runs, path
    assert (await make_hands("yolo", deny=["write_file"]).call("write_file", path="q", content="x")).status == "denied"
    covering = make_hands("ask", allow=["edit(**)"])
    assert (await covering.call("write_file", path=".git/hooks/x", content="x")).status == "denied"
    assert (
        await make_hands("auto", allow=["edit(.git/hooks/x)"]).call("write_file", path=".git/hooks/x", content="x")
    ).ok


@pytest.mark.parametrize("text", ["", "terminal(", "terminal('open)", "terminal()x", "(x)", "terminal(=)", "a b"])
def test_a_bad_rule_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_rule(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [("touch", "terminal(touch)"), ("git(push)", "terminal(git push)"), ("Terminal(ls)", "terminal(git status)")],
)
def test_a_rule_that_names_no_tool_is_refused_with_the_form(make_hands: MakeHands, text: str, form: str) -> None:
    for rules in ({"deny": [text]}, {"allow": ["terminal", text]}):
        with pytest.raises(ConfigError, match="names no tool") as raised:
            make_hands("auto", **rules)
        assert form in (raised.value.hint or "")


def test_rules_may_name_every_tool_also_those_of_later_versions() -> None:
    names = [name for tools in TOOLSETS.values() for name in tools]
    assert {"spawn_agent", "kanban_create", "web_search"} <= set(names)
    assert [rule.tool for rule in parse_rules([*names, "edit(src/**)"])] == [*names, "edit"]
    assert parse_rules(["post"], also=["post"])[0].tool == "post"


def test_rules_whose_brackets_mean_nothing_are_named() -> None:
    fine = ["terminal(git status)", "edit(a)", "write_file(a)", "patch(*.py)", "web_fetch(x.org)", "read_file", "todo"]
    assert without_effect(fine) == []
    told = without_effect([*fine, "read_file(x)", "process( kill )"])
    assert [line.partition(":")[0] for line in told] == [
        "the rule 'read_file(x)' covers nothing",
        "the rule 'process(kill)' covers nothing",
    ]
    assert "write read_file, or terminal(…)" in told[0]
