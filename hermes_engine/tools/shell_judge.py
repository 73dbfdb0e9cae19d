"""Judges each simple command of a parsed script: unwraps what runs others, asks the tables and the checks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from hermes_engine.tools import shell_danger as danger
from hermes_engine.tools.shell_danger import NOTHING, Finding, Grounds, Level, Words, worst
from hermes_engine.tools.shell_parse import Command, Script, parse
from hermes_engine.tools.shell_tables import (
    DECODERS,
    FETCHERS,
    INTERPRETERS,
    RISKY,
    RISKY_SUBCOMMANDS,
    ROOT_WRAPPERS,
    SAFE_VARIABLES,
    SHELLS,
    WORDS_BEFORE,
    WRAPPERS,
    Reads,
    program_of,
    reading_forms,
)
from hermes_engine.tools.shell_words import UNKNOWN, Word

_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_DEEPEST = 6
_MOST_WORDS = 2000


class Judge:
    """Judges one script."""

    def __init__(self, script: Script, grounds: Grounds, depth: int = 0) -> None:
        self._script, self._grounds, self._depth = script, grounds, depth
        self._fetched: set[str] = set()
        self._found: dict[int, Finding] = {}
        self.programs: list[Words] = []
        """Every program that is started, also by others."""
        for command in script.commands:
            self._found[id(command)] = self._command(command)

    def all(self) -> Iterable[Finding]:
        """What was found of each command."""
        return self._found.values()

    def of(self, command: Command) -> Finding:
        """What was found of one."""
        return self._found[id(command)]

    def _command(self, command: Command) -> Finding:
        findings = [self._grounds.reading(word) for word in command.reads]
        findings += [self._write(word) for word in command.writes]
        findings += [_assignment(name) for name in command.assigned]
        if len(command.words) > _MOST_WORDS:
            return Finding(Level.RISKY, "it is too long to be understood")
        if command.words:
            findings.append(self._program(command.words, command))
        return worst(findings)

    def _write(self, word: Word) -> Finding:
        if word.text in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"):
            return NOTHING
        return self._grounds.writing(word)

    def _program(self, words: Words, command: Command) -> Finding:
        if not words:
            return NOTHING
        self.programs.append(words)
        first = words[0]
        if not first.known or first.glob or not first.text:
            return Finding(Level.RISKY, "which program it runs is only known then")
        name = program_of(first.text)
        rest = words[1:]
        if name in self._script.functions:
            return Finding(Level.PLAIN, f"{name} is a function of its own")
        own = self._special(name, rest, command)
        if own is None:
            own = self._ordinary(name, rest, command)
        return worst([own, danger.files_of(name, rest, self._grounds)])

    def _special(self, name: str, rest: Words, command: Command) -> Finding | None:
        """Programs that run other commands, and those with checks of their own."""
        if name in WRAPPERS and not (name == "command" and danger.has_option(rest, "vV")):
            return self._wrapped(name, rest, command)
        if name in SHELLS:
            return self._shell(rest, command)
        if name in INTERPRETERS and name not in ("awk", "gawk"):
            return self._interpreter(name, rest, command)
        if name in ("eval", "trap", "su", "ssh"):
            return self._text_runner(name, rest)
        if name in ("source", "."):
            return self._run_file(rest[:1], command)
        if name == "find":
            return danger.finding(rest, self._grounds, lambda inner: self._program(inner, Command()))
        if name == "rm":
            return danger.removal(rest, self._grounds)
        if name == "git":
            return self._git(rest)
        if name in ("chmod", "chown", "chgrp"):
            return danger.ownership(name, rest, self._grounds)
        if name == "sed":
            return danger.sed(rest)
        if name in ("awk", "gawk", "mawk"):
            return danger.awk(rest)
        return None

    def _ordinary(self, name: str, rest: Words, command: Command) -> Finding:
        if re.match(r"mkfs|mke2fs$|mkswap$|newfs", name):
            return Finding(Level.FORBIDDEN, "it formats a disk")
        if name in RISKY:
            return Finding(Level.RISKY, f"{name}: {RISKY[name]}")
        if name in ("cd", "pushd") and rest and rest[-1].known:
            self._grounds.enter(rest[-1].text)
        if name in FETCHERS:
            self._fetched |= danger.fetched(name, rest, command.writes)
        if "/" in name and self._was_fetched([Word(name)]):
            return Finding(Level.RISKY, "it runs a file that it has just fetched")
        if name == "kill" and any(word.text == "-1" for word in rest[-1:]):
            return Finding(Level.RISKY, "it ends every process")
        if name in ("docker", "podman") and _opens_host(rest):
            return Finding(Level.RISKY, "the container gets hold of this machine")
        sub = next((word.text for word in rest if not word.text.startswith("-")), "")
        if reason := RISKY_SUBCOMMANDS.get(name, {}).get(sub):
            return Finding(Level.RISKY, f"{name} {sub}: {reason}")
        if name in ("test", "[") and any(re.search(r"\$\(|`|^-v$", word.text) for word in rest):
            return Finding(Level.PLAIN, "a test of a variable's name can run a command")
        if name == "date" and any(re.fullmatch(r"[\d.]+", word.text) for word in rest):
            return Finding(Level.PLAIN, "it may set the clock")
        if name == "read":
            fine = all(_OWN_NAME.match(word.text) for word in danger.targets_of(rest)) and all(
                word.known for word in rest
            )
            return NOTHING if fine else Finding(Level.PLAIN, "it sets variables")
        return NOTHING if _only_reads(name, rest) else Finding(Level.PLAIN, f"{name} may change something")

    def _wrapped(self, name: str, rest: Words, command: Command) -> Finding:
        """A program that runs the one after its options."""
        floor = NOTHING
        if name in ROOT_WRAPPERS:
            floor = Finding(Level.RISKY, f"{name} gives it other rights")
        elif name in (
            "script",
            "watch",
            "parallel",
            "flock",
            "strace",
            "ltrace",
            "exec",
            "coproc",
            "chroot",
            "unshare",
        ):
            floor = Finding(Level.PLAIN, f"{name} may change something")
        if name == "env" and danger.has_option(rest, "S", "split-string"):
            return Finding(Level.RISKY, "which program it runs is only known then")
        if name in ("script", "flock", "watch") and (texts := [word for word in rest if " " in word.text]):
            floor = worst([floor, *(self._text(word) for word in texts)])
        if name == "xargs":
            rest = _with_unknown(rest)
        candidates = list(_inner(name, rest))
        findings = [floor]
        for words in candidates:
            while name in ("env", "sudo") and words and re.match(r"\w+=", words[0].text):
                findings.append(_assignment(words[0].text.partition("=")[0]))
                words = words[1:]
            if name == "xargs" and [word.text for word in words] == [UNKNOWN]:
                continue
            if name == "xargs" and words and Path(words[0].text).name in SHELLS and words[1].text == UNKNOWN:
                findings.append(Finding(Level.RISKY, "it runs as scripts whatever it is given"))
            if words:
                findings.append(self._program(words, command))
        if name == "time" and danger.has_option(rest[:3], "o", "output"):
            findings.append(Finding(Level.PLAIN, "time writes a file"))
        return worst(findings)

    def _shell(self, rest: Words, command: Command) -> Finding:
        texts = danger.values_of(rest, "c")
        if danger.has_option(rest, "c") and texts:
            return self._text(texts[0])
        if len(rest) == 1 and rest[0].text == "--version":
            return NOTHING
        files = danger.targets_of(rest)
        if files and not danger.has_option(rest, "s"):
            return self._run_file(files[:1], command)
        return self._from_stdin(command)

    def _from_stdin(self, command: Command) -> Finding:
        if command.stdin == "text" and command.text is not None:
            return self._text(command.text)
        if command.stdin == "pipe":
            return Finding(Level.RISKY, "it runs as a script whatever is piped into it")
        if command.stdin == "file":
            return self._run_file(command.reads[:1], command)
        return Finding(Level.PLAIN, "it starts a shell")

    def _run_file(self, files: Words, command: Command) -> Finding:
        if any(_names(inner) & FETCHERS for inner in command.inner) or self._was_fetched(files):
            return Finding(Level.RISKY, "it runs what it has just fetched")
        if any(not word.known for word in files) and not command.inner:
            return Finding(Level.PLAIN, "it runs a script whose name is only known then")
        if any(not word.known for word in files):
            return Finding(Level.RISKY, "it runs a script that another command makes up")
        return Finding(Level.PLAIN, "it runs a script")

    def _interpreter(self, name: str, rest: Words, command: Command) -> Finding:
        if _only_reads(name, rest):
            return NOTHING
        foreign = FETCHERS | DECODERS
        piped = [other for other in command.upstream if _names(other) & foreign]
        inner = [other for other in command.inner if _names(other) & foreign]
        if piped or inner or self._was_fetched(danger.targets_of(rest)[:1]):
            return Finding(Level.RISKY, f"{name} runs what it has just fetched or decoded")
        return Finding(Level.PLAIN, f"{name} can do anything")

    def _text_runner(self, name: str, rest: Words) -> Finding:
        """`eval`, `trap`, `su -c`, `ssh HOST`: words that are a command text."""
        if name == "trap" and (not rest or rest[0].text in ("-", "", "-l", "-p")):
            return NOTHING
        words = rest
        if name == "trap":
            words = rest[:1]
        elif name == "ssh":
            words = danger.targets_of(rest)[1:]
        elif name == "su":
            words = danger.values_of(rest, "c")
        floor = (
            Finding(Level.RISKY, "su gives it other rights")
            if name == "su"
            else Finding(Level.PLAIN, f"{name} runs a command")
        )
        if not words:
            return floor
        found = self._text(Word(" ".join(word.text for word in words)))
        if name == "ssh" and found.level is Level.FORBIDDEN:
            found = Finding(Level.RISKY, found.reason)
        return worst([floor, found])

    def _git(self, rest: Words) -> Finding:
        findings = [NOTHING]
        place = 0
        while place < len(rest) and rest[place].text.startswith("-"):
            text = rest[place].text
            if text in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"):
                value = rest[place + 1].text if place + 1 < len(rest) else ""
                findings.append(danger.git_setting(value) if text in ("-c", "--config-env") else _git_place(text))
                place += 1
            elif text.startswith("-c"):
                findings.append(danger.git_setting(text[2:]))
            elif text not in ("--no-pager", "-P", "--version", "--help", "--no-optional-locks", "--literal-pathspecs"):
                findings.append(_git_place(text))
            place += 1
        if place >= len(rest):
            return worst(findings)
        sub, words = rest[place].text, rest[place + 1 :]
        if not rest[place].known:
            return Finding(Level.RISKY, "which git command it is is only known then")
        if _only_reads("git", rest[place:]):
            return worst([*findings, danger.repository(self._grounds, danger.values_of(rest[:place], "C"))])
        findings.append(danger.git(sub, words))
        findings += [self._text(word) for word in _run_by_git(sub, words)]
        return worst(findings)

    def _text(self, word: Word) -> Finding:
        """A word that is a command text of its own."""
        if not word.known:
            return Finding(Level.RISKY, "what it runs is only known then")
        if self._depth >= _DEEPEST:
            return Finding(Level.RISKY, "commands in commands in commands")
        home = self._grounds.protected.user_homes[0]
        script = parse(word.text, home=home, cwd=self._grounds.folders[0])
        inner = Judge(script, self._grounds, self._depth + 1)
        self.programs += inner.programs
        findings = list(inner.all())
        if script.broken:
            findings.append(Finding(Level.RISKY, "the text it runs does not parse"))
        if script.odd or script.functions:
            findings.append(Finding(Level.PLAIN, "the text it runs is not fully understood here"))
        return worst(findings)

    def _was_fetched(self, files: Words) -> bool:
        names = {UNKNOWN if not word.known else Path(word.text).name for word in files}
        return bool(self._fetched and names and (names & self._fetched or UNKNOWN in self._fetched or UNKNOWN in names))


def _only_reads(name: str, rest: Words) -> bool:
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


def _inner(name: str, rest: Words) -> Iterable[Words]:
    """What a wrapper may run; several readings where a long option may take the next word."""
    valued = WRAPPERS[name]
    places = [0]
    seen: set[int] = set()
    while places:
        place = places.pop()
        if place in seen:
            continue
        seen.add(place)
        while place < len(rest) and rest[place].text.startswith("-") and rest[place].text not in ("-", "--"):
            text = rest[place].text
            if text.startswith("--"):
                if "=" not in text:
                    places.append(place + 2)
            elif text[-1] in valued and not any(letter in valued for letter in text[1:-1]):
                place += 1
            place += 1
        if place < len(rest) and rest[place].text == "--":
            place += 1
        yield rest[place + WORDS_BEFORE.get(name, 0) :]


def _with_unknown(rest: Words) -> Words:
    """What xargs runs, with what it is given: at the end, and wherever its sign for it stands."""
    signs = {"{}", *(word.text for word in danger.values_of(rest, "I"))} - {""}
    return [*(Word(UNKNOWN) if any(sign in word.text for sign in signs) else word for word in rest), Word(UNKNOWN)]


def _assignment(name: str) -> Finding:
    if _OWN_NAME.match(name) or name in SAFE_VARIABLES:
        return NOTHING
    return Finding(Level.PLAIN, f"it sets {name or 'a variable'}, which may change what programs do")


def _git_place(option: str) -> Finding:
    return (
        NOTHING if option == "-C" else Finding(Level.PLAIN, f"git {option.partition('=')[0]} may change what git does")
    )


def _run_by_git(sub: str, words: Words) -> list[Word]:
    """Command texts in the words of git's own runners."""
    if sub == "submodule" and words and words[0].text == "foreach":
        return [Word(" ".join(word.text for word in danger.targets_of(words[1:])))]
    if sub == "bisect" and words and words[0].text == "run":
        return [Word(" ".join(word.text for word in words[1:]))]
    if sub == "rebase":
        after = [second for first, second in itertools.pairwise(words) if first.text == "--exec"]
        joined = [Word(word.text[7:]) for word in words if word.text.startswith("--exec=")]
        return [*danger.values_of(words, "x"), *after, *joined]
    if sub in ("difftool", "mergetool"):
        return danger.values_of(words, "x")
    return []


def _opens_host(rest: Words) -> bool:
    texts = [word.text for word in rest]
    mounts = [value.text for letter in "v" for value in danger.values_of(rest, letter)]
    mounts += [text.partition("=")[2] for text in texts if text.startswith(("--volume=", "--mount="))]
    return any(
        text.startswith(("--privileged", "--pid=host", "--net=host", "--network=host", "--device")) for text in texts
    ) or any(
        re.match(r"/(?:etc|root|home|var/run/docker\.sock|usr|proc|sys)?:|.*source=/(?:,|$)", mount) for mount in mounts
    )


def _names(command: Command) -> set[str]:
    return {Path(word.text).name for word in command.words if word.known}
