"""Whether a program is called in one of the ways in which it only reads. Words against a table; asks no file."""

from __future__ import annotations

import itertools
import re

from hermes_engine.tools.shell_danger import Words
from hermes_engine.tools.shell_tables import Reads, reading_forms


def only_reads(name: str, rest: Words) -> bool:
    """Whether the program, called with these words, is known to only read."""
    forms = reading_forms()
    for count in (2, 1, 0):
        key = " ".join([name, *(word.text for word in rest[:count])])
        if len(rest) >= count and key in forms:
            return _fits(forms[key], rest[count:])
    return False


def _fits(reads: Reads, words: Words) -> bool:
    """Whether every word is one of those with which the program only reads."""
    if reads.any_option:
        return True
    count, ended = 0, False
    for word in words:
        text = word.text
        if not ended and not word.known:
            return False
        if ended or not text.startswith("-") or text == "-" or (count and reads.words is not None):
            count += 1  # to some programs what follows the first name is a name too, dash or not
        elif text == "--":
            ended = True
        elif text.startswith("--"):
            if text[2:].partition("=")[0] not in reads.long:
                return False
        elif not text[1:].isdecimal() and not _cluster_fits(text[1:], reads.short):
            return False
    return reads.words is None or count <= reads.words


def _cluster_fits(letters: str, allowed: str) -> bool:
    """`-la`, `-n5`, `-k2,2`: letters up to the first that is none; the rest is a value."""
    plain = re.match(r"[A-Za-z]*", letters)
    return (
        bool(letters) and letters[0] in allowed and all(letter in allowed for letter in plain[0] if plain)
        if plain
        else False
    )


_CODE_THAT_RUNS = re.compile(
    r"exec|eval|compile|system|popen|subprocess|spawn|runpy|import_module|child_process|vm\b", re.I
)
_MODULES_THAT_RUN = frozenset({"code", "pdb", "runpy", "trace", "timeit", "cProfile", "profile", "IPython", "asyncio"})
_CODE_FOLLOWS = {"python": "c", "perl": "eE", "ruby": "e", "node": "ep", "php": "r", "lua": "e"}


def runs_its_input(name: str, rest: Words) -> bool:
    """Whether an interpreter takes its program, or a part of it, from standard input; where in doubt, it does.

    `python3 -m json.tool` and `python3 -c "print(json.load(sys.stdin))"` read data there.
    """
    letters = next((letters for program, letters in _CODE_FOLLOWS.items() if name.startswith(program)), "")
    words = list(rest)
    for word, following in itertools.zip_longest(words, words[1:]):
        if not word.known or word.text in ("-", "--"):
            return True
        if not word.text.startswith("-"):
            return False
        last = word.text[-1] if not word.text.startswith("--") else ""
        if following is not None and following.known:
            if last and last in letters:
                return bool(_CODE_THAT_RUNS.search(following.text))
            if last == "m" and letters == "c":
                return following.text in _MODULES_THAT_RUN
    return True
