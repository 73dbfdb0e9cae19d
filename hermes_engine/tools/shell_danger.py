"""Checks of single programs: what a call of `rm`, `git`, `find`, `dd`, `sed` … really does.

Pure functions from words to a finding; where things lie is asked of `Grounds`. Guard rails, not a wall: a
program can do anything once it runs.
"""

from __future__ import annotations

import enum
import glob
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hermes_engine.tools.protected import Protected, is_device, is_raw_disk
from hermes_engine.tools.shell_tables import FIND_TESTS, LOOKS_ONLY, WRITERS
from hermes_engine.tools.shell_words import UNKNOWN, Word


class Level(enum.IntEnum):
    """How much a command needs: nothing, what commands need, a yes of its own, or it is never run."""

    READ_ONLY = 0
    PLAIN = 1
    RISKY = 2
    FORBIDDEN = 3


class Finding(NamedTuple):
    """A level and why."""

    level: Level
    reason: str = ""


NOTHING = Finding(Level.READ_ONLY)
Words = Sequence[Word]


def worst(findings: Iterable[Finding]) -> Finding:
    """The finding of the highest level; NOTHING for none."""
    return max(findings, key=lambda finding: finding.level, default=NOTHING)


@dataclass(slots=True)
class Grounds:
    """Where a command runs.

    Attributes:
        protected: reasons for files.
        start: the working folder.
        folders: folders it may be in: where it starts, and each it changes to.
    """

    protected: Protected
    start: Path
    folders: list[Path] = field(default_factory=list)

    def places(self, text: str) -> list[Path]:
        """What a known word names as a path, for each folder the command may be in."""
        return [Path(os.path.realpath(folder / text)) for folder in self.folders]

    def enter(self, text: str) -> None:
        """The command changes into a folder."""
        self.folders = list(dict.fromkeys([*self.folders, *self.places(text)]))[:20]

    def writing(self, word: Word) -> Finding:
        """What it means that this file is written."""
        if not word.known:
            return Finding(Level.PLAIN, "it writes to a file whose name is only known then")
        for place in self.places(word.text):
            if is_raw_disk(str(place)) or is_raw_disk(word.text):
                return Finding(Level.FORBIDDEN, f"it writes to the disk {word.text} itself")
            if reason := self.protected.risk(place, self.start):
                return Finding(Level.RISKY, f"it changes {word.text}: {reason}")
        return Finding(Level.PLAIN, f"it writes {word.text}")

    def reading(self, word: Word) -> Finding:
        """What it means that this file is opened."""
        if word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            return Finding(Level.RISKY, "it opens a bare network connection")
        if not word.known:
            return NOTHING
        for text in _matching(word, self.folders):
            for place in self.places(text):
                if reason := self.protected.against_reading(place):
                    return Finding(Level.RISKY, f"it reads {word.text}: {reason}")
                if self.protected.holds_secrets(place):
                    return Finding(Level.RISKY, f"it reads through {word.text}, which holds credentials")
        return NOTHING

    def takes_all(self, word: Word) -> bool:
        """Whether deleting this tree would take root or a home with it."""
        if not word.known:
            return False
        text = word.text
        head, tail = os.path.split(text.rstrip("/") or "/")
        if tail and word.glob and not re.search(r"[^*?.\[\]!{},]", tail):
            text = head or "."
        return any(
            self.protected.is_root_or_home(place) or self.protected.is_other_home(place, self.start)
            for place in self.places(text)
        )

    def is_device(self, word: Word) -> bool:
        """Whether it names a device, other than those that harm nothing."""
        named = [os.path.normpath(folder / word.text) for folder in self.folders] if word.known else []
        return any(is_device(text) or (is_device(os.path.realpath(text)) and text[:5] != "/dev/") for text in named)


def files_of(name: str, words: Words, grounds: Grounds) -> Finding:
    """What the program's words say about the files it opens and changes."""
    findings = [NOTHING]
    plain = [word for word in words if not word.text.startswith("-")]
    if name not in LOOKS_ONLY:
        named = (Word(re.sub(r"^(?:--?[\w-]+=|\w+=@?|@)", "", word.text), word.glob) for word in words[:200])
        findings += [grounds.reading(word) for word in dict.fromkeys(named) if word.known and word.text]
    how = WRITERS.get(name)
    if how == "all" or (how == "-i" and any(re.match(r"-\w*i|--in-place", word.text) for word in words)):
        findings += map(grounds.writing, plain)
    elif how == "last" and plain:
        findings.append(grounds.writing(plain[-1]))
    elif how and how.startswith("-"):
        findings += map(grounds.writing, values_of(words, how[1:]))
    findings += [
        grounds.writing(Word(word.text.partition("=")[2]))
        for word in words
        if re.match(r"--?(?:of|out\w*|log)=|of=", word.text)
    ]
    return worst(findings)


def values_of(words: Words, letter: str) -> list[Word]:
    """Values of a one-letter option: `-o x`, `-ox`."""
    found = [second for first, second in itertools.pairwise(words) if re.fullmatch(rf"-\w*{letter}", first.text)]
    return found + [Word(word.text[2:]) for word in words if re.match(rf"-{letter}.", word.text)]


def has_option(words: Words, letters: str, *names: str) -> bool:
    """Whether an option is among the words: one of the letters in a cluster, or a long name or its beginning."""
    for word in words:
        if word.text == "--":
            return False
        if word.text.startswith("--"):
            given = word.text[2:].partition("=")[0]
            if given and any(name.startswith(given) for name in names):
                return True
        elif word.text.startswith("-") and any(letter in word.text[1:] for letter in letters):
            return True
    return False


def targets_of(words: Words) -> list[Word]:
    """Words that are no options; all of them after `--`."""
    found: list[Word] = []
    ended = False
    for word in words:
        if not ended and word.text == "--":
            ended = True
        elif ended or not word.text.startswith("-") or word.text == "-":
            found.append(word)
    return found


def removal(words: Words, grounds: Grounds) -> Finding:
    """`rm`."""
    everything = any(grounds.takes_all(word) for word in targets_of(words))
    if has_option(words, "rR", "recursive"):
        if everything:
            return Finding(Level.FORBIDDEN, "it deletes root or a home folder")
        return Finding(Level.RISKY, "it deletes folders with all they hold")
    if everything:
        return Finding(Level.RISKY, "it deletes what lies in root or a home folder")
    return Finding(Level.PLAIN, "it deletes files")


def finding(words: Words, grounds: Grounds, inner: Callable[[Words], Finding]) -> Finding:
    """`find`; `inner` judges a command that it runs on what it finds."""
    tests, commands = _taken_apart(words)
    ran = [inner(command) for command in commands]
    while tests and re.fullmatch(r"-[HLP]|-O\d|-D\w*", tests[0].text):
        tests = tests[1:]
    roots = list(itertools.takewhile(lambda word: not re.match(r"[-(!]", word.text), tests))
    names = {word.text[1:] for word in tests if word.text.startswith("-")}
    if "delete" in names or any(item.reason.startswith("it deletes") for item in ran):
        everything = any(map(grounds.takes_all, roots or [Word(".")]))
        if everything and not names - {"delete", "depth", "mindepth", "xdev", "type", "exec", "execdir", "mount"}:
            return Finding(Level.FORBIDDEN, "it deletes root or a home folder")
        return worst([Finding(Level.RISKY, "it deletes whatever it finds"), *ran])
    if names - FIND_TESTS - {"exec", "execdir"} or not all(word.known for word in words):
        ran.append(Finding(Level.PLAIN, "its tests are not all known to only read"))
    return worst(ran)


def _taken_apart(words: Words) -> tuple[list[Word], list[list[Word]]]:
    """What find tests, and the commands it runs; what it found stands in these as unknown."""
    tests: list[Word] = []
    commands: list[list[Word]] = []
    current: list[Word] | None = None
    for word in words:
        if current is not None and word.text in (";", "+"):
            current = None
        elif current is not None:
            current.append(Word(UNKNOWN) if "{}" in word.text else word)
        else:
            tests.append(word)
            if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
                current = []
                commands.append(current)
    return tests, [command for command in commands if command]


_SED = re.compile(
    r"(?:(?:\d+|\$|/[^/]*/)(?:,(?:\d+|\$|\+\d+|/[^/]*/))?!?)?\s*(?:[pdq=]|s([/|#,:@])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*)"
)


def sed(words: Words) -> Finding:
    """`sed` that prints; its scripts can also write files and run commands."""
    scripts = values_of(words, "e")
    if not scripts:
        scripts = targets_of(words)[:1]
    fine = all(
        re.fullmatch(r"-[nErsuz]+|-e|--quiet|--silent|--regexp-extended|[^-].*", word.text, re.DOTALL) for word in words
    )
    plain = all(
        word.known and all(_SED.fullmatch(part.strip()) for part in re.split(r"[;\n]", word.text)) for word in scripts
    )
    return NOTHING if fine and plain and scripts else Finding(Level.PLAIN, "sed can change files")


def awk(words: Words) -> Finding:
    """`awk` that prints; its programs can also write files and run commands."""
    programs = targets_of(words)[:1]
    options = [word.text for word in words if word.text.startswith("-")]
    fine = all(re.fullmatch(r"-F.*|-v", option) for option in options)
    plain = all(
        word.known and not re.search(r"system|getline|close|fflush|[|>@`]|ENVIRON|printf?\s*\(.*>", word.text)
        for word in programs
    )
    values = all(UNKNOWN not in word.text for word in words)
    if "-v" in options or "-F" in options:
        plain = all(not re.search(r"system|getline|[|>@`]", word.text) for word in words)
    return (
        NOTHING
        if fine and plain and values and programs
        else Finding(Level.PLAIN, "awk can change files and run commands")
    )


_RUNS = re.compile(
    r"(?:core\.(?:fsmonitor|sshcommand|pager|editor|hookspath|gitproxy|askpass|attributesfile|worktree)|alias\.|diff\..*(?:external|textconv|"
    r"command)|diff\.external|filter\.|merge\..*driver|credential\.|gpg\.|sequence\.editor|protocol\.|url\.|include|pager\.|"
    r"browser\.|difftool\.|mergetool\.|remote\..*\.(?:receivepack|uploadpack|vcs)|submodule\..*\.update|uploadpack\.|init\.templatedir|"
    r"http\..*proxy|ssh\.|interactive\.difffilter|man\..*\.cmd|web\.browser|tar\.)",
    re.IGNORECASE,
)


def git_setting(text: str) -> Finding:
    """`git -c KEY=VALUE` or `git config KEY`: several keys name programs that git will run."""
    if _RUNS.match(text) or UNKNOWN in text:
        return Finding(Level.RISKY, f"the setting {text.partition('=')[0]} makes git run a program")
    return Finding(Level.PLAIN, "it changes a git setting")


_OWN_PROGRAMS = re.compile(
    rb"^\s*(?:external|textconv|command|clean|smudge|process|path)\s*=|^\s*\[\s*include", re.IGNORECASE | re.MULTILINE
)


def repository(grounds: Grounds, chosen: Words) -> Finding:
    """Whether the settings inside the repository make a reading git run programs (diff, filters); `chosen`: -C."""
    folders = [place for word in chosen if word.known for place in grounds.places(word.text)]
    for folder in folders or grounds.folders:
        for above in (folder, *folder.parents):
            dot = above / ".git"
            if not dot.exists():
                continue
            try:
                settings = dot / "config" if dot.is_dir() else _worktree_settings(dot)
                found = _OWN_PROGRAMS.search(settings.read_bytes()[:1_000_000])
            except OSError:
                found = None
            if found:
                return Finding(Level.PLAIN, "the repository's own settings make git run programs")
            break
    return NOTHING


def _worktree_settings(dot: Path) -> Path:
    """The settings file that a `.git` file leads to."""
    git = dot.parent / dot.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
    common = git / "commondir"
    return (git / common.read_text().strip() if common.exists() else git) / "config"


_LOST = "it throws away changes that are not committed"
_HISTORY = "it deletes history that cannot be brought back"
_GIT_RISKS: dict[str, tuple[Callable[[Words], bool], str]] = {
    "push": (
        lambda words: (
            has_option(words, "fd", "force", "force-with-lease", "mirror", "delete", "prune")
            or any(word.text.startswith(("+", ":")) for word in words)
        ),
        "it overwrites or deletes what is on the server",
    ),
    "clean": (
        lambda words: has_option(words, "f", "force") and not has_option(words, "n", "dry-run"),
        "it deletes files that git does not know",
    ),
    "reset": (lambda words: has_option(words, "", "hard", "merge", "keep"), _LOST),
    "checkout": (lambda words: has_option(words, "f", "force") or any(word.text == "." for word in words), _LOST),
    "switch": (lambda words: has_option(words, "f", "force", "discard-changes"), _LOST),
    "restore": (lambda words: not has_option(words, "S", "staged"), _LOST),
    "stash": (lambda words: any(word.text in ("drop", "clear") for word in words[:1]), _HISTORY),
    "reflog": (lambda words: any(word.text in ("expire", "delete") for word in words[:1]), _HISTORY),
    "update-ref": (lambda words: has_option(words, "d"), _HISTORY),
    "filter-branch": (lambda words: True, _HISTORY),
    "filter-repo": (lambda words: True, _HISTORY),
    "prune": (lambda words: True, _HISTORY),
    "daemon": (lambda words: True, "it reaches beyond this machine"),
    "send-email": (lambda words: True, "it reaches beyond this machine"),
}


def git(sub: str, words: Words) -> Finding:
    """A git subcommand that may lose work or run something; PLAIN for every other."""
    if sub == "config":
        if has_option(words, "", "global", "system"):
            return Finding(Level.RISKY, "it changes git's settings for everything")
        return worst([_MAY_CHANGE, *(git_setting(word.text) for word in words)])
    risk, reason = _GIT_RISKS.get(sub, (lambda words: False, ""))
    return Finding(Level.RISKY, reason) if risk(words) else Finding(Level.PLAIN, f"git {sub} may change something")


_MAY_CHANGE = Finding(Level.PLAIN, "it may change something")


def run_by_git(sub: str, words: Words) -> list[Word]:
    """Command texts in the words of git's own runners."""
    if sub == "submodule" and words and words[0].text == "foreach":
        return [Word(" ".join(word.text for word in targets_of(words[1:])))]
    if sub == "bisect" and words and words[0].text == "run":
        return [Word(" ".join(word.text for word in words[1:]))]
    if sub == "rebase":
        after = [second for first, second in itertools.pairwise(words) if first.text == "--exec"]
        joined = [Word(word.text[7:]) for word in words if word.text.startswith("--exec=")]
        return [*values_of(words, "x"), *after, *joined]
    if sub in ("difftool", "mergetool"):
        return values_of(words, "x")
    return []


def ownership(name: str, words: Words, grounds: Grounds) -> Finding:
    """`chmod`, `chown`, `chgrp`."""
    if has_option(words, "R", "recursive") and any(map(grounds.takes_all, targets_of(words)[1:])):
        return Finding(Level.RISKY, "it changes the rights of root or a home folder as a whole")
    if name == "chmod" and any(re.fullmatch(r"[ugoa]*\+[rwxX]*s[rwxXt]*|[2467][0-7]{3}", word.text) for word in words):
        return Finding(Level.RISKY, "it lets others run a program with its owner's rights")
    return Finding(Level.PLAIN, f"{name} changes rights")


def fetched(name: str, words: Words, writes: Words) -> set[str]:
    """Names of files that a fetching command leaves behind; UNKNOWN where that is only known then."""
    places = [*writes, *values_of(words, "o" if name != "wget" else "O")]
    places += [Word(word.text.partition("=")[2]) for word in words if word.text.startswith("--output")]
    if (name == "wget" or has_option(words, "O", "remote-name")) and not places:
        places = targets_of(words)
    return {UNKNOWN if not word.known else Path(word.text).name for word in places}


def _matching(word: Word, folders: Sequence[Path]) -> list[str]:
    """The word, and files that it matches as a glob (a bounded look)."""
    if not word.glob or not word.known or len(re.findall(r"[*?\[]", word.text)) > 3 or "**" in word.text:
        return [word.text]
    found: list[str] = []
    for folder in folders[:3]:
        found += itertools.islice(glob.iglob(word.text, root_dir=folder), 50)  # noqa: PTH207 - patterns may be absolute
    return [word.text, *found]
