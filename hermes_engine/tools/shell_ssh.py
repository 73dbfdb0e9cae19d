"""The words of `ssh`: what is its own, what runs on the other machine, what it runs on this one."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes_engine.tools.shell_danger import Words
from hermes_engine.tools.shell_words import Word

_VALUED = frozenset("BbcDEeFIiJLlmOopPQRSWw")
_RUNS_HERE = re.compile(r"\s*(?:proxycommand|localcommand|knownhostscommand)\s*[=\s]\s*(.*)", re.IGNORECASE | re.DOTALL)


class Call(NamedTuple):
    """A call of ssh: words of the remote command, command texts for this machine, files written here."""

    remote: Words
    here: list[Word]
    logs: list[Word]


def taken_apart(words: Words) -> Call:
    """Reads them as ssh does: options stand before the host, and between it and the command too."""
    here: list[Word] = []
    logs: list[Word] = []
    place, host = 0, False
    while place < len(words):
        text = words[place].text
        if text == "--" and host:
            place += 1
            break
        if text.startswith("-") and text not in ("-", "--"):
            letter, value, used = _option(words, place)
            if letter == "o" and (match := _RUNS_HERE.match(value.text)):
                here.append(Word(match[1]))
            elif letter == "E":
                logs.append(value)
            place += used
            continue
        if text != "--" and host:
            break
        host = host or text != "--"
        place += 1
    return Call(words[place:], here, logs)


def _option(words: Words, place: int) -> tuple[str, Word, int]:
    """The option that takes a value ("" for none), its value, how many words it all is."""
    text = words[place].text
    for at, letter in enumerate(text[1:], 2):
        if letter in _VALUED:
            if text[at:]:
                return letter, Word(text[at:]), 1
            return letter, words[place + 1] if place + 1 < len(words) else Word(""), 2
    return "", Word(""), 1
