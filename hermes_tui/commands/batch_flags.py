"""The flags of `hermes batch run` behind `/batch FILE`: names and values out of one line. Knows no front end."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections import deque
from pathlib import Path
from typing import Any

from hermes_engine.batch.options import BatchOptions
from hermes_engine.errors import UsageError
from hermes_engine.paths import expanded
from hermes_tui.switch_words import ALONE, meant
from hermes_tui.texts import _

_BEGIN = re.compile(r"(?:^|\s)(?=--[A-Za-z]|-[mpt](?:\s|$))")
_SHORT = {"-m": "model", "-p": "profile", "-t": "toolsets"}
_NOT_HERE = frozenset({"dataset_file", "output_dir", "only_failed", "api_key"})
"""The file is named before the flags, runs of a chat are in its folder, and what is typed in a chat is kept."""

_SEVERAL = frozenset({"base_url", "filter"})
_FILES = frozenset({"prefill_messages_file", "work_dir"})
_OBJECTS = frozenset({"sampling", "extra_body"})

NAMES = tuple(name for name in BatchOptions.model_fields if name not in _NOT_HERE)
"""Of the flags that there are, without the dashes."""

_SWITCHES = frozenset(name for name in NAMES if BatchOptions.model_fields[name].annotation is bool)
_SWITCHED_OFF = {f"no{between}{name}": name for name in _SWITCHES for between in ("", "_")}


def parted(text: str) -> tuple[str, str]:
    """What stands before the first flag, and the flags."""
    found = _BEGIN.search(text)
    return (text[: found.start()].strip(), text[found.end() :]) if found else (text, "")


def values_of(text: str, folder: Path) -> dict[str, Any]:
    """Options out of flags; files are seen from `folder`.

    Raises:
        UsageError: a flag is unknown, has no value or one too many, or its value is no JSON object.
    """
    try:
        words = deque(shlex.split(text))
    except ValueError:
        raise UsageError(_("a quote is not closed")) from None
    values: dict[str, Any] = {}
    while words:
        spelled, joined, given = words.popleft().partition("=")
        off = _SWITCHED_OFF.get(spelled[2:].replace("-", "_")) if spelled.startswith("--") else None
        name = off or _name_of(spelled)
        if name in _SWITCHES:
            if not joined and words and words[0].lower() in ALONE:
                joined, given = "=", words.popleft()
            values[name] = (_yes(name, given) if joined else True) is (off is None)
            continue
        value = given if joined else _next(words, name)
        if name in _SEVERAL:
            values[name] = (*values.get(name, ()), value)
        elif name in _OBJECTS:
            values[name] = _object(name, value, folder)
        else:
            values[name] = folder / expanded(value) if name in _FILES else value
    return values


def _name_of(word: str) -> str:
    name = _SHORT.get(word) or word.removeprefix("--").replace("-", "_")
    if word.startswith("-") and name in NAMES:
        return name
    if name in _NOT_HERE and word.startswith("--"):
        raise UsageError(_("--{name} cannot be given here").format(name=name), hint="hermes batch run")
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = _("did you mean --{name}?").format(name=near[0]) if near else _("`hermes batch run --help` lists them")
    raise UsageError(_("there is no flag {word}").format(word=word), hint=hint)


def _yes(name: str, word: str) -> bool:
    said = meant(word)
    if said is None:
        raise UsageError(_("--{name}: {word!r} is neither true nor false").format(name=name, word=word))
    return said


def _next(words: deque[str], name: str) -> str:
    value = words.popleft() if words else None
    if value is None or value.startswith("--"):
        raise UsageError(_("--{name} needs a value").format(name=name))
    return value


def _object(name: str, value: str, folder: Path) -> dict[str, Any]:
    text = value
    try:
        if not value.lstrip().startswith(("{", "[")):
            text = (folder / expanded(value)).read_text("utf-8-sig")
        found = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        words = _("--{name}: {value} is neither a JSON object nor a file with one: {why}")
        why = getattr(error, "strerror", None) or error
        raise UsageError(words.format(name=name, value=value, why=why)) from None
    if not isinstance(found, dict):
        raise UsageError(_("--{name}: {value} is no JSON object").format(name=name, value=value))
    return found
