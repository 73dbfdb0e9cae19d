"""docs/permissions.md says what is so: its rules can be read, its modes and its table are those of the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from hermes_engine.requests import Answer
from hermes_engine.settings.values import Mode
from hermes_engine.tools.permissions import ORDER
from hermes_engine.tools.rules import parse_rule, parse_rules
from tests.tools.conftest import MakeHands
from tests.tools.test_permissions import EDIT, READ, RISKY, TOUCH, asking

TEXT = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text("utf-8")
FORM = re.compile(r"`((?:terminal|edit|write_file|patch|web_fetch)(?:\([^`…]*\))?)`")
QUOTED = sorted({match[1] for match in FORM.finditer(TEXT)})
EXAMPLE = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[0])["approvals"]


def modes_table() -> dict[str, list[str]]:
    part = TEXT.partition("## Modes")[2].partition("\n## ")[0]
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:3] == "| `"
    ]
    return {name: cells for name, *cells in rows}


def rules_table() -> list[str]:
    part = TEXT.partition("| rule | covers |")[2].partition("\n\n")[0]
    return [rule for line in part.splitlines() for rule in re.findall(r"`([^`]+)`", line.strip("|").partition("|")[0])]


@pytest.mark.parametrize("text", QUOTED)
def test_every_rule_in_it_can_be_read(text: str) -> None:
    rule = parse_rule(text)
    assert text == (f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool)


def test_its_example_and_its_table_are_settings_that_are_taken() -> None:
    assert len(parse_rules([*EXAMPLE["allow"], *EXAMPLE["deny"]])) == 6
    assert EXAMPLE["mode"] in get_args(Mode)
    assert len(parse_rules(rules_table())) == 11


def test_it_names_the_modes_there_are() -> None:
    assert set(modes_table()) == set(get_args(Mode))
    assert tuple(modes_table()) == ORDER, "from the tightest to the freest"


@pytest.mark.parametrize("mode", ORDER)
async def test_the_table_of_modes_is_what_happens(make_hands: MakeHands, mode: str) -> None:
    for call, said in zip((READ, EDIT, TOUCH, RISKY), modes_table()[mode], strict=True):
        answers = [Answer("no")] if said == "ask" else []
        result, asked = await asking(make_hands(mode, attended=True), call, *answers)
        assert len(asked) == len(answers), (mode, call)
        assert (result.status == "denied") is (said != "run"), (mode, call, result.text)


async def test_what_it_says_of_rules_holds(make_hands: MakeHands) -> None:
    async def ran(command: str, **rules: list[str]) -> bool:
        mode = "yolo" if "deny" in rules else "ask"
        return (await make_hands(mode, **rules).call("terminal", command=command)).status != "denied"

    assert await ran("touch a", allow=["terminal"])
    assert not await ran("rm -rf build", allow=["terminal", "terminal(rm)"])
    assert await ran("rm -rf build", allow=["terminal(=rm -rf build)"])
    assert not await ran("rm -rf other", allow=["terminal(=rm -rf build)"])
    assert not await ran("touch x > f", allow=["terminal(touch)"])
    assert await ran("touch x > f", allow=["terminal(touch)", "edit(*)"])
    for command in ("sudo git push", "bash -c 'git push'"):
        assert not await ran(command, deny=["terminal(git push)"])
    for command in ("rm -rf /", "rm -rf ~", "find / -delete", "wipefs -a /dev/sda", "cat x > /dev/sda"):
        assert not await ran(command, allow=[f"terminal(={command})"], deny=[])
