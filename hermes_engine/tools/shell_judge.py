"""Judges each simple command of a parsed script: unwraps what runs others, asks the tables and the checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hermes_engine.tools import shell_danger as danger
from hermes_engine.tools import shell_disks, shell_own, shell_secrets, shell_signals, shell_ssh
from hermes_engine.tools.shell_danger import NOTHING, Finding, Grounds, Level, Words, worst
from hermes_engine.tools.shell_parse import Command, Script, parse
from hermes_engine.tools.shell_reading import only_reads, runs_its_input
from hermes_engine.tools.shell_tables import (
    CHANGING_WRAPPERS,
    DECODERS,
    FETCHERS,
    INTERPRETERS,
    MANY_IN_ONE,
    RISKY,
    RISKY_SUBCOMMANDS,
    ROOT_WRAPPERS,
    SAFE_VARIABLES,
    SHELLS,
    WORDS_BEFORE,
    WRAPPERS,
    program_of,
)
from hermes_engine.tools.shell_words import UNKNOWN, Word

_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_DEEPEST = 6
_MOST_WORDS, _MOST_PROGRAMS, _MOST_WRAPPERS = 2000, 100, 10
_TOO_LONG = Finding(Level.RISKY, "it is too long to be understood")


class Judge:
    """Judges one script."""

    def __init__(self, script: Script, grounds: Grounds, depth: int = 0) -> None:
        self._script, self._grounds, self._depth = script, grounds, depth
        self._fetched: set[str] = set()
        self._found: dict[int, Finding] = {}
        self._seen: dict[tuple[int, tuple[Word, ...]], Finding] = {}
        self._wrappers = 0
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
            return _TOO_LONG
        self._seen.clear()
        if command.words:
            findings.append(self._program(command.words, command))
        return worst(findings)

    def _write(self, word: Word) -> Finding:
        if word.text in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"):
            return NOTHING
        return self._grounds.writing(word)

    def _program(self, words: Words, command: Command) -> Finding:
        """What one program may do; each reading of a command's words is looked at once, as wrappers double them."""
        if not words:
            return NOTHING
        key = (id(command), tuple(words))
        if key not in self._seen:
            if len(self._seen) >= _MOST_PROGRAMS or self._wrappers >= _MOST_WRAPPERS:
                return _TOO_LONG
            self._seen[key] = NOTHING
            self._wrappers += 1
            self._seen[key] = self._started(words, command)
            self._wrappers -= 1
        return self._seen[key]

    def _started(self, words: Words, command: Command) -> Finding:
        self.programs.append(words)
        first = words[0]
        if not first.known or first.glob or not first.text:
            return Finding(Level.RISKY, "which program it runs is only known then")
        name = program_of(first.text)
        rest = words[1:]
        findings = [NOTHING]
        if name in self._script.functions:  # where it is none, the program of that name runs
            findings.append(Finding(Level.PLAIN, f"{name} is a function of its own"))
        # a program that lies elsewhere may still be the one of that name: trusted no more, feared no less
        for known_as in dict.fromkeys((name, Path(name).name or name)):
            own = self._special(known_as, rest, command)
            findings.append(self._ordinary(known_as, rest, command) if own is None else own)
            findings.append(danger.files_of(known_as, rest, self._grounds))
            findings.append(shell_secrets.read_through(known_as, rest, self._grounds))
            if loosening := shell_own.called(known_as, rest):
                findings.append(loosening)
        return worst(findings)

    def _special(self, name: str, rest: Words, command: Command) -> Finding | None:
        """Programs that run other commands, and those with checks of their own."""
        if name in WRAPPERS and not (name == "command" and danger.has_option(rest, "vV")):
            return self._wrapped(name, rest, command)
        if name in SHELLS:
            return self._shell(rest, command)
        if name in INTERPRETERS and name not in ("awk", "gawk"):
            return self._interpreter(name, rest, command)
        if name in ("eval", "trap", "su", "ssh", "alias"):
            return self._ssh(rest) if name == "ssh" else self._text_runner(name, rest)
        if name in ("source", "."):
            return self._run_file(rest[:1], command)
        if name == "find":
            return danger.finding(rest, self._grounds, lambda inner: self._on_found(inner, rest))
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
        return shell_signals.sent(name, rest, command) or shell_disks.ended(name, rest, self._grounds)

    def _ordinary(self, name: str, rest: Words, command: Command) -> Finding:
        if re.match(r"mkfs|mke2fs$|mkswap$|newfs", name):
            return Finding(Level.FORBIDDEN, "it formats a disk")
        if name in RISKY:
            return Finding(Level.RISKY, f"{name}: {RISKY[name]}")
        if name == "cd" and not danger.targets_of(rest):
            self._grounds.enter(str(self._grounds.protected.user_homes[0]))
        elif name in ("cd", "pushd") and rest and rest[-1].known:
            self._grounds.enter(rest[-1].text)
        if name in FETCHERS:
            self._fetched |= danger.fetched(name, rest, command.writes)
        if "/" in name and self._was_fetched([Word(name)]):
            return Finding(Level.RISKY, "it runs a file that it has just fetched")
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
        return NOTHING if only_reads(name, rest) else Finding(Level.PLAIN, f"{name} may change something")

    def _wrapped(self, name: str, rest: Words, command: Command) -> Finding:
        """A program that runs the one after its options."""
        floor = _least(name, rest)
        if name == "env" and danger.has_option(rest, "S", "split-string"):
            return Finding(Level.RISKY, "which program it runs is only known then")
        if name in ("script", "flock", "watch") and (texts := [word for word in rest if " " in word.text]):
            floor = worst([floor, *(self._text(word) for word in texts)])
        if name == "xargs":
            rest = _with_unknown(rest)
        candidates = list(_inner(name, rest))
        findings = [floor]
        for words in candidates:
            if len(self._seen) >= _MOST_PROGRAMS:
                findings.append(_TOO_LONG)
                break
            while name in ("env", "sudo") and words and re.match(r"\w+=", words[0].text):
                findings.append(_assignment(words[0].text.partition("=")[0]))
                words = words[1:]
            if name == "xargs" and [word.text for word in words] == [UNKNOWN]:
                continue
            if name == "xargs" and words:
                findings.append(self._on_given(words, command))
            if words:
                findings.append(self._program(words, command))
        if name == "time" and danger.has_option(rest[:3], "o", "output"):
            findings.append(Finding(Level.PLAIN, "time writes a file"))
        return worst(findings)

    def _on_given(self, words: Words, command: Command) -> Finding:
        """A command that xargs runs on what it is given."""
        applet = words[1:] if words[0].text in MANY_IN_ONE else words
        if len(applet) > 1 and Path(applet[0].text).name in SHELLS and applet[1].text == UNKNOWN:
            return Finding(Level.RISKY, "it runs as scripts whatever it is given")
        if not shell_secrets.opens(words):
            return NOTHING
        return shell_secrets.handed_on((other.words for other in command.upstream), self._grounds)

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
        if only_reads(name, rest):
            return NOTHING
        foreign = FETCHERS | DECODERS
        piped = [other for other in command.upstream if _names(other) & foreign]
        inner = [other for other in command.inner if _names(other) & foreign]
        if (piped and runs_its_input(name, rest)) or inner or self._was_fetched(danger.targets_of(rest)[:1]):
            return Finding(Level.RISKY, f"{name} runs what it has just fetched or decoded")
        return Finding(Level.PLAIN, f"{name} can do anything")

    def _text_runner(self, name: str, rest: Words) -> Finding:
        """`eval`, `trap`, `su -c`, `alias`: words that are a command text."""
        if name == "trap" and (not rest or rest[0].text in ("-", "", "-l", "-p")):
            return NOTHING
        words = rest
        if name == "trap":
            words = rest[:1]
        elif name == "su":
            words = danger.values_of(rest, "c")
        floor = (
            Finding(Level.RISKY, "su gives it other rights")
            if name == "su"
            else Finding(Level.PLAIN, f"{name} runs a command")
        )
        if not words:
            return floor
        if name == "alias":
            return worst([floor, *(self._text(Word(word.text.partition("=")[2])) for word in words)])
        return worst([floor, self._text(Word(" ".join(word.text for word in words)))])

    def _ssh(self, rest: Words) -> Finding:
        call = shell_ssh.taken_apart(rest)
        findings = [Finding(Level.PLAIN, "ssh reaches another machine"), *map(self._grounds.writing, call.logs)]
        findings += map(self._text, call.here)
        if call.remote:
            found = self._text(Word(" ".join(word.text for word in call.remote)))
            findings.append(Finding(min(found.level, Level.RISKY), found.reason))
        return worst(findings)

    def _on_found(self, words: Words, search: Words) -> Finding:
        """A command that find runs on what it finds."""
        secrets = shell_secrets.searched(search, self._grounds) if shell_secrets.opens(words) else NOTHING
        return worst([secrets, self._program(words, Command())])

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
        if only_reads("git", rest[place:]):
            return worst([*findings, danger.repository(self._grounds, danger.values_of(rest[:place], "C"))])
        findings.append(danger.git(sub, words))
        findings += [self._text(word) for word in danger.run_by_git(sub, words)]
        return worst(findings)

    def _text(self, word: Word) -> Finding:
        """A word that is a command text of its own."""
        if not word.known:
            return Finding(Level.RISKY, "what it runs is only known then")
        if self._depth >= _DEEPEST:
            return Finding(Level.RISKY, "commands in commands in commands")
        home = self._grounds.protected.user_homes[0]
        script = parse(word.text, home=home, cwd=self._grounds.folders[0], numbers=self._script.numbers)
        inner = Judge(script, self._grounds, self._depth + 1)
        self.programs += inner.programs
        findings = [*inner.all(), shell_secrets.passed_on(word.text, script.commands, self._grounds)]
        if script.broken:
            findings.append(Finding(Level.RISKY, "the text it runs does not parse"))
        if script.odd or script.functions:
            findings.append(Finding(Level.PLAIN, "the text it runs is not fully understood here"))
        return worst(findings)

    def _was_fetched(self, files: Words) -> bool:
        names = {UNKNOWN if not word.known else Path(word.text).name for word in files}
        return bool(self._fetched and names and (names & self._fetched or UNKNOWN in self._fetched or UNKNOWN in names))


def _least(name: str, rest: Words) -> Finding:
    """What a wrapper needs, whatever it runs."""
    if name in ROOT_WRAPPERS:
        return Finding(Level.RISKY, f"{name} gives it other rights")
    changes = name in CHANGING_WRAPPERS or (name in MANY_IN_ONE and (not rest or rest[0].text.startswith("-")))
    return Finding(Level.PLAIN, f"{name} may change something") if changes else NOTHING


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
