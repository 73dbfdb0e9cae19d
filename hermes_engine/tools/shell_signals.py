"""Whom `kill`, `pkill`, `killall` and `fuser -k` reach: jobs of the command's own, or anybody.

Pure functions from words to a finding; None = another program, the tables have the say.
"""

from __future__ import annotations

import re

from hermes_engine.tools.shell_danger import Finding, Level, Words, has_option, values_of
from hermes_engine.tools.shell_parse import Command
from hermes_engine.tools.shell_words import OWN_PROCESS, PARENT, Word

_OWN = Finding(Level.PLAIN, "it signals what it started itself")
_ANYBODY = Finding(Level.RISKY, "it signals a process that it has not started itself ($! and %1 are its own)")
_BY_NAME = frozenset({"pkill", "killall", "killall5", "skill", "xkill"})


def sent(name: str, words: Words, command: Command) -> Finding | None:
    """What a call that signals processes means, None for any other program."""
    if name in _BY_NAME:
        parents = values_of(words, "P")
        if name == "pkill" and parents and all(word.text == OWN_PROCESS for word in parents):
            return _OWN
        return Finding(Level.RISKY, "it ends every process that matches, whoever started it")
    if name == "fuser" and has_option(words, "k", "kill"):
        return Finding(Level.RISKY, "it ends whatever uses a file or a port")
    return _killed(words, command) if name == "kill" else None


def _killed(words: Words, command: Command) -> Finding:
    targets = list(words)
    first = targets[0].text if targets else ""
    signal = ""
    if first in ("-s", "-n", "--signal") and len(targets) > 1:
        signal, targets = targets[1].text, targets[2:]
    elif len(targets) > 1 and re.match(r"-(?!-\Z)", first):
        signal, targets = first.lstrip("-").removeprefix("signal="), targets[1:]
    if signal in ("0", "l", "L", "list"):
        return Finding(Level.PLAIN, "it only asks whether a process is there")
    unknown = [word for word in targets if not word.known and not _is_own(word)]
    if any(PARENT in word.text for word in targets):
        return Finding(Level.FORBIDDEN, "it ends the program that started it")
    everybody = any(re.fullmatch(r"-0*1", word.text) for word in targets)
    if everybody and len(words) > 1:  # alone it is a signal without a target
        return Finding(Level.FORBIDDEN, "it ends every process")
    if len(unknown) == 1 and command.inner and all(_tells_jobs(inner) for inner in command.inner):
        unknown = []
    strangers = [word for word in targets if word.known and re.match(r"-?\d", word.text)]
    return _ANYBODY if unknown or strangers else _OWN


def _is_own(word: Word) -> bool:
    return word.text.removeprefix("-") == OWN_PROCESS or word.text.startswith("%")


def _tells_jobs(command: Command) -> bool:
    return [word.text for word in command.words] in (["jobs", "-p"], ["jobs", "-pr"], ["jobs", "-rp"])
