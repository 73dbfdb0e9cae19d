"""What the documents show of the command line exists, and every verb and flag stands in a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from hermes_tui.cli.root import hermes
from hermes_tui.cli.shape import spelling

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("README*.md")]
_SHOWN = re.compile(r"`([^`]+)`|^(?:\$ )?((?:hermes|python batch_runner\.py) .*)$", re.MULTILINE)
_CALL = re.compile(r"(hermes|python batch_runner\.py)\b(.*)")


def test_every_command_line_in_the_documents_exists() -> None:
    wrong = [f"{path.name}: {line}" for path in DOCUMENTS for line in _lines(path) if not _exists(line)]
    assert wrong == []


def test_every_verb_and_flag_stands_in_a_document() -> None:
    text = " ".join(path.read_text() for path in DOCUMENTS)
    missing = [
        f"{' '.join(path)} {option.opts[-1]}"
        for path, command in _verbs(hermes, ())
        for option in command.params
        if isinstance(option, click.Option) and not any(_named(name, text) for name in option.opts)
    ]
    assert missing == []
    assert [path for path, _ in _verbs(hermes, ()) if f"{path[-1]}" not in text] == []


def _lines(path: Path) -> Iterator[list[str]]:
    for found in _SHOWN.finditer(path.read_text().replace("\\\n", " ")):
        call = _CALL.match(" ".join((found[1] or found[2]).split()))
        if call is not None:
            yield [*(["batch", "run"] if "batch_runner" in call[1] else []), *call[2].split()]


def _exists(words: list[str]) -> bool:
    command: click.Command = hermes
    flags = _flags(hermes) | {"-h", "--help", "-"}
    for word in words:
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return False
            command, flags = found, flags | _flags(found)
        elif word.startswith("-") and spelling(word.partition("=")[0].strip("[].,;…")) not in flags:
            return False
    return True


def _flags(command: click.Command) -> set[str]:
    return {spelling(name) for item in command.params if isinstance(item, click.Option) for name in item.opts}


def _verbs(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, (*path, name))
        elif command is not None and not command.hidden:
            yield (*path, name), command


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}\b", text) is not None
