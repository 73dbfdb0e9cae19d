"""Protected files that a command gets at by the words of another: what `find` looks for, what is piped to xargs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from hermes_engine.tools.shell_danger import NOTHING, Finding, Grounds, Level, Words, has_option, targets_of, worst
from hermes_engine.tools.shell_parse import Command
from hermes_engine.tools.shell_tables import LOOKS_ONLY, program_of
from hermes_engine.tools.shell_words import Word

_MOST_NAMES = 300
_NAMES = re.compile(r"-i?(?:name|path|wholename|regex)")
_ONLY_KNOWN_THEN = re.compile(r"\$\{[^}]*\}?|\$\w*|\{[^{}]*\}")
"""What stands in a name for a part that the shell fills in: a variable, the beginning of a substitution, `{a,b}`."""


def opens(words: Words) -> bool:
    """Whether a program opens the files it is given."""
    return bool(words) and (not words[0].known or program_of(words[0].text) not in LOOKS_ONLY)


def searched(words: Words, grounds: Grounds) -> Finding:
    """What it means that files which `find`, called with these words, looks for are opened."""
    tests = list(words)
    while tests and re.fullmatch(r"-[HLP]|-O\d|-D\w*", tests[0].text):
        tests = tests[1:]
    roots = list(itertools.takewhile(lambda word: not re.match(r"[-(!]", word.text), tests)) or [Word(".")]
    for option, value in itertools.pairwise(tests):
        if not _NAMES.fullmatch(option.text) or not value.known:
            continue
        name = "*" if "regex" in option.text else value.text.rpartition("/")[2]
        folders = [place for root in roots if root.known for place in grounds.places(root.text)]
        if any(grounds.protected.may_find(folder, name) for folder in folders):
            return Finding(Level.RISKY, f"it reads what it finds as {value.text}, which can be a file with credentials")
    return NOTHING


def read_through(name: str, words: Words, grounds: Grounds) -> Finding:
    """What it means that a program looks for text in folders, hidden files too: a home folder as a whole holds keys."""
    if name in ("grep", "egrep", "fgrep", "zgrep"):
        deep = has_option(words, "rR", "recursive", "dereference-recursive")
    else:
        short = "".join(word.text[1:] for word in words if re.match(r"-[^-]", word.text))
        deep = name == "rg" and (has_option(words, ".", "hidden") or short.count("u") > 1)
    if not deep:
        return NOTHING
    named = targets_of(words)
    for word in named if len(named) > 1 else [Word(".")]:
        if word.known and any(map(grounds.protected.is_root_or_home, grounds.places(word.text))):
            return Finding(Level.RISKY, f"it reads through {word.text}, where credentials lie")
    return NOTHING


def handed_on(others: Iterable[Words], grounds: Grounds) -> Finding:
    """What it means that files are opened whose names these commands tell."""
    findings = [NOTHING]
    for words in others:
        name = program_of(words[0].text) if words else ""
        if name == "find":
            findings.append(searched(words[1:], grounds))
        elif name in LOOKS_ONLY:
            findings += [grounds.reading(word) for word in words[1:50] if word.text]
    return worst(findings)


def passed_on(text: str, commands: Iterable[Command], grounds: Grounds) -> Finding:
    """What it means that some of the commands open files whose names only the run tells, as `cat "$f"` does.

    Args:
        text: the whole of what the shell gets: what is named anywhere in it may be what is opened.
        commands: the simple commands in it.
        grounds: where they run.
    """
    commands = list(commands)
    if not any(opens(item.words) and not all(word.known for word in item.words) for item in commands):
        return NOTHING
    home = str(grounds.protected.user_homes[0])
    unquoted = re.sub(r"['\"\\]", "", text).replace("`", "$ ")
    bare = re.sub(r"(?<![\w/])(?:~(?=/)|\$HOME\b|\$\{HOME\})", lambda match: home, unquoted)
    split = [_ONLY_KNOWN_THEN.sub("*", name) for name in re.split(r"[\s=;|&()<>]+", bare)]
    names = dict.fromkeys(name for name in split if "/" in name or "." in name)
    parted = [name.rpartition("/") for name in names]
    names |= {folder: None for folder, _, last in parted if folder and "*" in last}
    if home in bare:
        names |= {f"{home}/{name}": None for name in split if name and name[0] not in "/~-"}
    findings = [grounds.reading(Word(name, "*" in name)) for name in itertools.islice(names, _MOST_NAMES)]
    if len(names) > _MOST_NAMES:
        findings.append(Finding(Level.PLAIN, "it names too many files to look at"))
    return worst([*findings, handed_on((item.words for item in commands), grounds)])
