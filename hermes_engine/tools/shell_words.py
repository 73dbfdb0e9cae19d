"""The words of a shell command from its parse tree: quotes undone, known variables filled in.

What the shell would only know at run time stands as UNKNOWN. Judges nothing and looks into no substitution:
it only says which nodes hold commands.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "\0"
"""Stands in a word for what only the run will tell."""
OWN_PROCESS, PARENT = UNKNOWN + "\x01", UNKNOWN + "\x02"
"""Stand for a number that is not known but for whose it is: the shell's or its last job's, and its parent's."""
_PART, _DOLLAR, _TILDE = "\x1f", "\x1e", "\x1d"

_NAMED_HOME = re.compile(rf"{_TILDE}([^{_TILDE}]+){_TILDE}(.*)\Z", re.DOTALL)
_NUMBERS = {"!": OWN_PROCESS, "$": OWN_PROCESS, "BASHPID": OWN_PROCESS, "PPID": PARENT}
_ASSIGNED = re.compile(r"""(?<![\w$])([A-Za-z_]\w*)\+?=(?:(["']?)\$\{?(!|\$|BASHPID|PPID)\}?\2(?=[\s;&|)}'"]|\Z))?""")
_READ_OR_LOOPED = re.compile(r"\b(?:for|read)\b([^;\n]*)")
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_BRACES = re.compile(r"(?<!\\)\{[^}]*(?:,|\.\.)[^}]*\}|^\{[^}]*$|^[^{]*\}$")
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPE_IN_STRING = re.compile(r"\\([\\\"$`\n])")
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def numbers_in(source: str) -> dict[str, str]:
    """Variables that a text gives nothing but the number of a job of its own (`SERVER=$!`), or its parent's."""
    found: dict[str, set[str]] = {}
    for match in _ASSIGNED.finditer(source):
        found.setdefault(match[1], set()).add(_NUMBERS.get(match[3], UNKNOWN))
    set_otherwise = {name for match in _READ_OR_LOOPED.finditer(source) for name in re.findall(r"\w+", match[1])}
    mine = {name for name, kinds in found.items() if kinds == {OWN_PROCESS}} - set_otherwise
    parents = {name for name, kinds in found.items() if PARENT in kinds}
    return dict.fromkeys(mine, OWN_PROCESS) | dict.fromkeys(parents, PARENT)


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quotes are undone.

    Attributes:
        text: with UNKNOWN for parts that are not known.
        glob: the shell will replace it by matching file names.
    """

    text: str
    glob: bool = False

    @property
    def known(self) -> bool:
        """Whether the word is what it says, apart from a glob."""
        return UNKNOWN not in self.text


class WordReader:
    """Makes words from the nodes of one source text.

    Args:
        source: the text.
        variables: values of the variables that are known.
    """

    def __init__(self, source: bytes, variables: Mapping[str, str]) -> None:
        self._source, self._variables = source, variables

    def text(self, node: Node) -> str:
        """What a node covers, as it stands there."""
        return self._slice(node.start_byte, node.end_byte)

    def words(self, nodes: Sequence[Node], inner: list[Node]) -> list[Word]:
        """The word that touching nodes stand for; several where `$IFS` parts it."""
        pieces: list[tuple[str, bool]] = []
        for place, node in enumerate(nodes):
            pieces.extend(self._pieces(node, inner, first=place == 0))
        words: list[list[tuple[str, bool]]] = [[]]
        dollar = False
        for text, glob in pieces:
            if dollar:
                name = re.match(r"\w*", text)
                variable = self._value(name[0]) if name and name[0] else "$"
                text = text[len(name[0]) :] if name else text
                words[-1].append((variable, False)) if variable != _PART else words.append([])
            dollar = text == _DOLLAR
            if text == _PART:
                words.append([])
            elif not dollar:
                words[-1].append((text, glob))
        made = [
            Word(self._home("".join(text for text, _ in word)), any(glob for _, glob in word)) for word in words if word
        ]
        return made or [Word("")]

    def _home(self, text: str) -> str:
        """`~` alone or before a slash is the home folder, `~NAME` the home of that user, else itself."""
        if match := _NAMED_HOME.match(text):
            whole = match[2][:1] in ("", "/")
            return (_home_of(match[1]) if whole else f"~{match[1]}") + match[2]
        if not text.startswith(_TILDE):
            return text
        return (self._variables["HOME"] if text[1:2] in ("", "/") else "~") + text[1:]

    def _pieces(self, node: Node, inner: list[Node], *, first: bool = True) -> Iterator[tuple[str, bool]]:
        kind = node.type
        if kind in ("word", "number"):
            yield self._bare(self.text(node), first=first), bool(_GLOB.search(self.text(node)))
        elif kind == "raw_string":
            yield self.text(node)[1:-1], False
        elif kind == "ansi_c_string":
            yield _ANSI.sub(_ansi, self.text(node)[2:-1]), False
        elif kind == "concatenation":
            yield from self._concatenation(node, inner, first=first)
        elif kind in ("string", "translated_string"):
            yield from self._string(node, inner)
        elif kind in ("simple_expansion", "expansion"):
            inner.append(node)
            yield self._variable(node), False
        else:
            inner.append(node)
            yield UNKNOWN, False

    def _concatenation(self, node: Node, inner: list[Node], *, first: bool) -> Iterator[tuple[str, bool]]:
        if _BRACES.search(self.text(node)) and any(child.type == "word" for child in node.named_children):
            outside = re.sub(r"'[^']*'|\"[^\"]*\"|\$\{[^}]*\}", "", self.text(node))
            if "{" in outside and ("," in outside or ".." in outside):
                yield UNKNOWN, False
        end = node.start_byte
        for child in node.children:
            if self._source[end : child.start_byte].replace(b"\\\n", b""):
                yield UNKNOWN, False
            end = child.end_byte
            if child.is_named:
                yield from self._pieces(child, inner, first=first and child.start_byte == node.start_byte)
            else:
                yield _DOLLAR, False

    def _string(self, node: Node, inner: list[Node]) -> Iterator[tuple[str, bool]]:
        parts = [child for child in node.named_children if child.type != "string_content"]
        if not parts:
            raw = self.text(node)
            yield _ESCAPE_IN_STRING.sub(_unescaped, raw[raw.index('"') + 1 : -1]), False
            return
        place = node.start_byte + 1
        for child in parts:
            start = child.start_byte
            yield _ESCAPE_IN_STRING.sub(_unescaped, self._slice(place, start)), False
            for text, _ in self._pieces(child, inner):
                yield (text if text != _PART else UNKNOWN), False
            place = child.end_byte
        yield _ESCAPE_IN_STRING.sub(_unescaped, self._slice(place, node.end_byte - 1)), False

    def _variable(self, node: Node) -> str:
        match = re.fullmatch(r"\s*\$\{?(\w+|[!$])(?::?\?[^}]*|%/)?\}?", self.text(node))
        return self._value(match[1]) if match else UNKNOWN

    def _value(self, name: str) -> str:
        return _PART if name == "IFS" else _NUMBERS.get(name) or self._variables.get(name, UNKNOWN)

    def _bare(self, text: str, *, first: bool = True) -> str:
        if _BRACES.search(text) and ("," in text or ".." in text):
            return UNKNOWN
        if not first:
            return _ESCAPE.sub(_unescaped, text)
        if text == "~":
            return _TILDE
        if text.startswith("~/"):
            text = self._variables["HOME"] + text[1:]
        elif match := re.fullmatch(r"~([A-Za-z_][\w.-]*)(/.*)?", text, re.DOTALL):
            text = f"{_TILDE}{match[1]}{_TILDE}{match[2] or ''}"
        elif text.startswith("~"):
            return UNKNOWN
        return _ESCAPE.sub(_unescaped, text)

    def _slice(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")


def _home_of(user: str) -> str:
    """The home folder of a user, UNKNOWN for nobody that this machine knows."""
    try:
        return pwd.getpwnam(user).pw_dir
    except (KeyError, OSError):
        return UNKNOWN


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _ansi(match: re.Match[str]) -> str:
    code = match[1]
    try:
        if code[0] in "xuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
    except (ValueError, OverflowError):
        return UNKNOWN
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    return _ANSI_LETTERS.get(code, code)
