"""Filters a person chooses for kept rows: each names what it drops and why. Judges records, reads no file.

The two filters that always apply are elsewhere, for they need to know what was on offer: `filters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from hermes_engine.batch.duplicates import NearDuplicates
from hermes_engine.batch.job import Record
from hermes_engine.errors import UnknownName, UsageError

Judge = Callable[[Record], str]
"""Why a record is dropped, in words; "" keeps it."""

NEAR = "near_duplicate"
NAMES = ("finished", "no_failed_tools", "min_turns", "max_turns", "min_chars", "max_chars", NEAR, "language")
"""Names of the filters; `docs/batch.md` says what each looks at."""

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LOOKED_AT = 2000

_LANGUAGES = """
af am ar az be bg bg-Latn bn bs ca ceb co cs cy da de el el-Latn en eo es et eu fa fi fil fr fy ga gd gl gu ha haw hi
hi-Latn hmn hr ht hu hy id ig is it iw ja ja-Latn jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt my ne
nl no ny pa pl ps pt ro ru ru-Latn sd si sk sl sm sn so sq sr st su sv sw ta te tg th tr uk ur uz vi xh yi yo zh
zh-Latn zu
"""
"""What the detector tells apart; a code it never says would drop every row."""

_SAME_LANGUAGE = {"he": "iw", "in": "id", "ji": "yi", "jw": "jv", "nb": "no", "tl": "fil"}
"""Codes by which others name them."""


class Quality:
    """The filters of a run, in order; the one for near duplicates last, for it remembers what all others keep.

    Args:
        wanted: each NAME or NAME:VALUE.

    Raises:
        UsageError: a name or value is wrong, or a package it needs is missing.
    """

    def __init__(self, wanted: Sequence[str] = ()) -> None:
        ordered = sorted(wanted, key=lambda one: one.partition(":")[0] == NEAR)
        self._judges = [(one.partition(":")[0], judge_of(one)) for one in ordered]

    @property
    def remembers(self) -> bool:
        """Whether rows kept earlier count: they are to be shown to `against` before new ones."""
        return any(name == NEAR for name, _ in self._judges)

    def against(self, record: Record) -> tuple[str, str] | None:
        """The name of the filter that drops a record, and why; None keeps it."""
        for name, judge in self._judges:
            if detail := judge(record):
                return name, detail
        return None

    def remember(self, record: Record) -> None:
        """Takes in a row that was kept earlier, whatever the filters would say now."""
        for name, judge in self._judges:
            if name == NEAR:
                judge(record)


def judge_of(wanted: str) -> Judge:
    """The filter `NAME[:VALUE]`. Raises as `Quality` does."""
    name, colon, value = wanted.partition(":")
    match name:
        case "finished" | "no_failed_tools":
            if colon:
                raise UsageError(f"{name} takes no value")
            return _unfinished if name == "finished" else _failed_tools
        case "min_turns" | "max_turns" | "min_chars" | "max_chars":
            return _limit(name, value)
        case "near_duplicate":
            return NearDuplicates(_share(value) if colon else 0.9).meet
        case "language":
            return _language(value)
        case _:
            raise UnknownName("filter", name, NAMES)


def _unfinished(record: Record) -> str:
    return "" if record.get("completed") else f"ended by {record.get('stop_reason')}"


def _failed_tools(record: Record) -> str:
    failed = {name: number for name, number in record.get("tool_error_counts", {}).items() if number}
    return ", ".join(f"{name} failed {'once' if n == 1 else f'{n} times'}" for name, n in failed.items())


def _limit(name: str, value: str) -> Judge:
    if not value.isascii() or not value.isdigit():
        raise UsageError(f"{name}:{value} needs a whole number", hint=f"{name}:5")
    limit = int(value)
    measure = turns_in if name.endswith("turns") else characters_in
    words = "turn" if name.endswith("turns") else "character"
    fewest = name.startswith("min")

    def judge(record: Record) -> str:
        found = measure(record)
        if (found >= limit) if fewest else (found <= limit):
            return ""
        return f"{found} {words}{'' if found == 1 else 's'}, {'fewer' if fewest else 'more'} than {limit}"

    return judge


def turns_in(record: Record) -> int:
    """Turns of the model."""
    return sum(turn["from"] == "gpt" for turn in record["conversations"])


def characters_in(record: Record) -> int:
    """Characters of the whole conversation: texts, calls, results."""
    return sum(
        len(turn["value"]) + sum(len(json.dumps(call, ensure_ascii=False)) for call in turn.get("tool_calls", ()))
        for turn in record["conversations"]
    )


def _share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"{NEAR}:{value} needs a share above 0, up to 1", hint=f"{NEAR}:0.9")
    return share


def _language(value: str) -> Judge:
    codes = [code.strip() for code in value.split(",")]
    wanted = {_SAME_LANGUAGE.get(code, code) for code in codes}
    known = _LANGUAGES.split()
    if unknown := [code for code in codes if _SAME_LANGUAGE.get(code, code) not in known]:
        raise UsageError(f"language:{value}: {unknown[0]!r} is no code of a language it knows", hint="language:es,en")
    try:
        import gcld3  # the extra `language`
    except ImportError:
        raise UsageError(
            "the filter language needs the package cld3-py, which is missing", hint="pip install '.[language]'"
        ) from None
    detector: Any = gcld3.NNetLanguageIdentifier(0, _LOOKED_AT)

    def judge(record: Record) -> str:
        found = detector.FindLanguage(said_in(record))
        return f"it is in {found.language}" if found.is_reliable and found.language not in wanted else ""

    return judge


def said_in(record: Record) -> str:
    """The model's words, the last first, without thoughts and code; as much as a language is told by."""
    told: list[str] = []
    for turn in reversed(record["conversations"]):
        if turn["from"] == "gpt":
            told.append(_CODE.sub(" ", _THOUGHT.sub("", turn["value"])))
            if sum(map(len, told)) >= _LOOKED_AT:
                break
    return "\n".join(told)
