"""Rules a person writes or remembers: `terminal(git status)`, `edit(src/**)`, `web_fetch(example.org)`, `todo`.

- `terminal(WORDS)` covers simple commands that begin with these words, quotes undone; `*` stands for any one
  word. It never covers a risky command; `terminal(=WORDS)` covers exactly these words, risky or not.
- `edit(GLOB)` covers `write_file` and `patch` on files that match: relative to the working folder, absolute, or
  from `~`; `**` crosses folders.
- `web_fetch(HOST)` covers a host, `*.HOST` those under it.
- `NAME` alone covers every call of a tool that is not risky; `web_fetch` alone covers every host.

A command is covered when each simple command in it is covered or only reads. Deny wins over allow.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_engine.errors import ConfigError
from hermes_engine.tools.shell_danger import Level
from hermes_engine.tools.shell_rules import Part
from hermes_engine.tools.shell_tables import program_of
from hermes_engine.tools.shell_words import UNKNOWN
from hermes_engine.toolsets import TOOLSETS

_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
EDIT_TOOLS = ("write_file", "patch")
_FORMS = "write terminal(git status), edit(src/**), web_fetch(host) or a tool"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, parsed.

    Attributes:
        tool: name of a tool, or "edit".
        pattern: what stands in the brackets, "" for none.
        words: of a terminal rule.
        exact: whether they must be all words.
    """

    tool: str
    pattern: str = ""
    words: tuple[str, ...] = ()
    exact: bool = False

    def covers_tool(self, name: str) -> bool:
        """Whether it speaks of this tool."""
        return self.tool == name or (self.tool == "edit" and name in EDIT_TOOLS)

    def covers_part(self, part: Part, *, deny: bool = False) -> bool:
        """Whether it covers a simple command; a rule that denies covers it with whatever is around it."""
        if self.tool != "terminal":
            return False
        if not deny and not part.clean:
            return False
        if not self.pattern:
            return deny or part.level < Level.RISKY
        if part.level >= Level.RISKY and not (self.exact or deny):
            return False
        words = part.words
        if words and "/" not in self.words[0]:
            words = (program_of(words[0]), *words[1:])
        if len(words) < len(self.words) or (self.exact and len(words) != len(self.words)):
            return False
        matches = _same if self.exact else _like
        return all(matches(word, pattern) for word, pattern in zip(words, self.words, strict=False))

    def covers_file(self, path: Path, start: Path, user_home: Path) -> bool:
        """Whether it covers writing a file (resolved path)."""
        if self.tool not in ("edit", *EDIT_TOOLS):
            return False
        if not self.pattern:
            return True
        pattern = str(user_home / self.pattern[2:]) if self.pattern.startswith("~/") else self.pattern
        base = Path("/") if pattern.startswith("/") else start
        return (
            path.is_relative_to(base) and _glob(pattern.lstrip("/")).fullmatch(str(path.relative_to(base))) is not None
        )

    def covers_host(self, host: str) -> bool:
        """Whether it covers fetching from a host."""
        if self.tool != "web_fetch":
            return False
        wanted = self.pattern.lower()
        return not wanted or host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:]))


def parse_rule(text: str) -> Rule:
    """A rule from its text. Raises ConfigError that says what is wrong."""
    match = _FORM.match(text)
    if not match:
        raise ConfigError(f"{text!r} is no rule", hint=_FORMS)
    tool, pattern = match[1], (match[2] or "").strip()
    if tool != "terminal" or not pattern:
        return Rule(tool, pattern)
    exact = pattern.startswith("=")
    try:
        words = tuple(shlex.split(pattern.removeprefix("=")))
    except ValueError as error:
        raise ConfigError(f"{text!r} is no rule: {error}") from None
    if not exact and len(words) > 1 and words[-1] == "*":
        words = words[:-1]  # `git push *` means what `git push` means
    if not words:
        raise ConfigError(f"{text!r} names no command")
    return Rule(tool, pattern, words, exact)


def parse_rules(texts: Iterable[str], *, also: Iterable[str] = ()) -> tuple[Rule, ...]:
    """All rules of a settings' list.

    Args:
        texts: the rules.
        also: names of tools that are in no toolset.

    Raises:
        ConfigError: at the first that is no rule or speaks of no tool; tools of later versions count as tools.
    """
    known = {"edit", *also, *(name for tools in TOOLSETS.values() for name in tools)}
    rules: list[Rule] = []
    for text in texts:
        rule = parse_rule(text)
        if rule.tool not in known:
            meant = f"terminal({f'{rule.tool} {rule.pattern}'.strip()})"
            raise ConfigError(
                f"the rule {text!r} names no tool", hint=f"for the command {rule.tool} write {meant}; else {_FORMS}"
            )
        rules.append(rule)
    return tuple(rules)


def without_effect(texts: Iterable[str]) -> list[str]:
    """A line for each rule whose brackets mean nothing to its tool, so that it covers no call.

    Raises:
        ConfigError: a rule that cannot be read, as `parse_rules`.
    """
    return [
        f"the rule {f'{rule.tool}({rule.pattern})'!r} covers nothing: {rule.tool} takes no brackets — "
        f"write {rule.tool}, or terminal(…), edit(…), web_fetch(…)"
        for rule in parse_rules(texts)
        if rule.pattern and rule.tool not in ("terminal", "edit", *EDIT_TOOLS, "web_fetch")
    ]


def _like(word: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    return UNKNOWN not in word and fnmatchcase(word, pattern)


def _same(word: str, pattern: str) -> bool:
    return word == pattern and UNKNOWN not in word


def _glob(pattern: str) -> re.Pattern[str]:
    out: list[str] = []
    for part in re.split(r"(\*\*/?|\*|\?)", pattern):
        if part.startswith("**"):
            out.append("(?:.*/)?" if part.endswith("/") else ".*")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)))
    return re.compile("".join(out), re.DOTALL)
