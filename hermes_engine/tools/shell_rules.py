"""Judges a shell command before it runs: does it only read, is it like any other, risky, or never to be run?

By parsing, not by patterns: a command only reads if every word of every simple command in it is in a table.
A guard rail, not a sandbox: a program that runs can do what the person can.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hermes_engine.tools.protected import Protected
from hermes_engine.tools.shell_danger import Finding, Grounds, Level, worst
from hermes_engine.tools.shell_judge import Judge
from hermes_engine.tools.shell_parse import Command, Script, parse
from hermes_engine.tools.shell_secrets import passed_on
from hermes_engine.tools.shell_tables import (
    EXACT_ONLY,
    FETCHERS,
    INTERPRETERS,
    MANY_IN_ONE,
    RISKY,
    ROOT_WRAPPERS,
    RUNNERS,
    SHELLS,
    SUBCOMMANDED,
)
from hermes_engine.tools.shell_words import UNKNOWN
from hermes_engine.tools.web_address import host_of

Kind = Literal["read_only", "plain", "risky", "forbidden"]

_TAKES_CODE = (
    SHELLS | INTERPRETERS | MANY_IN_ONE | {"xargs", "parallel", "at", "batch", "psql", "mysql", "sqlite3", "ssh"}
)
_BOMB = re.compile(r"([\w:.]+)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1\s*&")
_LONGEST = 10_000
"""Letters of a text without a parse that are searched, which takes time by the square of their number."""
_ALONE = re.compile(r"(?<![&>])&(?![&>\d])")
_TOUCHY = (
    SHELLS
    | FETCHERS
    | ROOT_WRAPPERS
    | MANY_IN_ONE
    | RISKY.keys()
    | {"rm", "dd", "eval", "source", "xargs", "find", "git", "chmod", "chown", "mv", "kill", "pkill", "killall"}
)


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command of a command, as rules match it.

    Attributes:
        words: quotes undone; UNKNOWN stands in those that are only known at the run.
        level: what it needs.
        clean: nothing but the words matters: no variables set for it, no input that is code, all around it understood.
    """

    words: tuple[str, ...]
    level: Level
    clean: bool

    @property
    def rule(self) -> str:
        """The rule that would let this and its like run, "" where there is none."""
        if not self.clean or not self.words or any(UNKNOWN in word for word in self.words):
            return ""
        name = Path(self.words[0]).name
        quoted = shlex.join
        if self.level >= Level.RISKY or (name in EXACT_ONLY and tuple(self.words[:2]) not in RUNNERS):
            return f"={quoted(self.words)}"
        count = 1 if name not in SUBCOMMANDED and tuple(self.words[:2]) not in RUNNERS else 2
        if tuple(self.words[:2]) in RUNNERS:
            count = 3
        wanted = self.words[:count]
        if len(wanted) < count or any(word.startswith("-") for word in wanted[1:] if word != "-m"):
            return f"={quoted(self.words)}"
        return f"={quoted(self.words)}" if Path(wanted[-1]).name in EXACT_ONLY else quoted(wanted)


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """What a command needs.

    Attributes:
        kind: read_only | plain | risky | forbidden.
        reason: why, for people and for the model.
        rules: what "for this session" would allow, one for each simple command that needs it; () = only once.
        parts: the simple commands that do more than read.
        programs: every program it starts, also through others (`sudo X`, `sh -c X`).
        writes: files it redirects into.
        hosts: hosts that fetching commands in it name; "" where one is only known at the run.
    """

    kind: Kind
    reason: str
    rules: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    programs: tuple[Part, ...] = ()
    writes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def judge(command: str, cwd: Path, protected: Protected, *, start: Path | None = None) -> CommandVerdict:
    """Judges a command text.

    Args:
        command: as the shell would get it.
        cwd: folder it would run in.
        protected: reasons for files; its first home stands for `~`.
        start: the working folder; `cwd` by default.
    """
    home = protected.user_homes[0] if protected.user_homes else Path("/")
    script = parse(command, home=home, cwd=cwd)
    grounds = Grounds(protected, start or cwd, [cwd])
    judged = Judge(script, grounds)
    found = worst([*judged.all(), *_whole(command, script, grounds), passed_on(command, script.commands, grounds)])
    understood = not (script.broken or script.odd)
    parts = tuple(
        Part(tuple(word.text for word in item.words), judged.of(item).level, understood and _clean(item))
        for item in script.commands
        if judged.of(item).level > Level.READ_ONLY
    )
    rules = tuple(dict.fromkeys(part.rule for part in parts))
    offered = bool(rules) and all(rules) and len(rules) <= 3 and understood and not script.functions
    writes = tuple(word.text for item in script.commands for word in item.writes)
    return CommandVerdict(
        _KINDS[found.level],
        found.reason or "it only reads",
        rules if offered else (),
        parts,
        tuple(Part(tuple(word.text for word in words), Level.PLAIN, True) for words in judged.programs),
        tuple(text for text in writes if text not in ("/dev/null", "/dev/stdout", "/dev/stderr")),
        tuple(_hosts(script.commands)),
    )


_KINDS: dict[Level, Kind] = {
    Level.READ_ONLY: "read_only",
    Level.PLAIN: "plain",
    Level.RISKY: "risky",
    Level.FORBIDDEN: "forbidden",
}


def _clean(command: Command) -> bool:
    """Whether its words tell all: no variables, no unknown target, no input that is code or words to it."""
    if command.assigned or command.text is not None or any(not word.known for word in command.writes):
        return False
    names = {Path(word.text).name for word in command.words[:1]}
    return command.stdin == "none" or names.isdisjoint(_TAKES_CODE)


def _whole(text: str, script: Script, grounds: Grounds) -> Iterable[Finding]:
    """What only shows in the command as a whole."""
    for name, body in script.functions.items():
        calls = [item for item in body if item.words and item.words[0].text == name]
        piped = any(other.words and other.words[0].text == name for item in calls for other in item.upstream)
        if calls and (piped or len(calls) > 1) and _ALONE.search(text):
            yield Finding(Level.FORBIDDEN, "it starts itself over and over (a fork bomb)")
        yield Finding(Level.PLAIN, "it defines functions")
    if script.broken:
        yield _unparsed(text, grounds)
    elif script.odd:
        yield Finding(Level.PLAIN, f"it holds what is not understood here ({', '.join(sorted(script.odd))})")


def _unparsed(text: str, grounds: Grounds) -> Finding:
    """A text that does not parse: judged by its bare words, with quotes and escapes taken away."""
    long, text = len(text) > _LONGEST, text[:_LONGEST]
    bare = re.sub(r"\$\{?IFS\}?", " ", re.sub(r"[\\'\"]", "", text))
    homes = "|".join(re.escape(str(home)) for home in grounds.protected.user_homes)
    if re.search(
        rf"\brm\s(?:.*\s)?(?:/|~|\$HOME|\$\{{HOME\}}|{homes or '~'}|~\w+|/root|/home(?:/[\w.-]+)?)/?\.?\*?(?:\s|$|;)",
        bare,
    ) and re.search(r"\s-\w*[rR]|--rec", bare):
        return Finding(Level.FORBIDDEN, "it does not parse, and seems to delete root or a home folder")
    if _BOMB.search(bare) or re.search(r"\bmkfs|of=/dev/(?:[shv]d|nvme|mmcblk)", bare):
        return Finding(Level.FORBIDDEN, "it does not parse, and seems to destroy the system")
    words = {Path(word).name for word in re.findall(r"[\w./~+-]+", bare)}
    if words & _TOUCHY or "$'" in text or ">" in text:
        return Finding(Level.RISKY, "it does not parse, so nobody can say what it does")
    if long:
        return Finding(Level.RISKY, "it does not parse, and is too long to be understood")
    return Finding(Level.PLAIN, "it does not parse")


def _hosts(commands: Iterable[Command]) -> Iterable[str]:
    for command in commands:
        names = [Path(word.text).name for word in command.words]
        if FETCHERS.isdisjoint(names):
            continue
        found = [word for word in command.words if "://" in word.text]
        if not found:
            found = [word for word in command.words[1:] if re.match(r"[^-].*[.:]|localhost", word.text)]
        yield from (host_of(_as_url(word.text)) if word.known else "" for word in found)
        if not found:
            yield ""


def _as_url(text: str) -> str:
    return text if "://" in text else f"http://{text}"
