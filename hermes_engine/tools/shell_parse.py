"""A shell command as its simple commands: words with quotes undone, redirections, what is piped into what.

Parses with tree-sitter-bash. Judges nothing. What the shell would only know at run time (a variable, the
output of a command) stands as UNKNOWN in a word; commands inside substitutions are commands like any other.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from hermes_engine.tools.shell_words import UNKNOWN, Word, WordReader, numbers_in

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_NESTING = frozenset(
    {
        "program", "list", "compound_statement", "do_group", "subshell", "if_statement", "elif_clause", "else_clause",
        "while_statement", "for_statement", "c_style_for_statement", "case_statement", "case_item", "negated_command",
        "command_substitution", "process_substitution", "arithmetic_expansion", "variable_assignments", "array",
        "test_command", "unary_expression", "binary_expression", "ternary_expression", "parenthesized_expression",
        "postfix_expression", "subscript", "string", "concatenation", "expansion", "simple_expansion", "heredoc_body",
    }
)  # fmt: skip
_LEAVES = frozenset(
    {
        "word", "number", "raw_string", "ansi_c_string", "translated_string", "variable_name", "special_variable_name",
        "string_content", "heredoc_content", "heredoc_start", "heredoc_end", "comment", "test_operator", "regex",
        "extglob_pattern", "file_descriptor", "brace_expression",
    }
)  # fmt: skip
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_WRITING = frozenset({">", ">>", "&>", "&>>", ">|", "<>", ">&"})

Stdin = Literal["none", "pipe", "text", "file"]


@dataclass(slots=True)
class Command:
    """One simple command, or the redirections of a compound one (then without words)."""

    words: list[Word] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    """Names of variables set by it or for it."""
    writes: list[Word] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    stdin: Stdin = "none"
    text: Word | None = None
    """Here-document or here-string that it reads."""
    upstream: list[Command] = field(default_factory=list)
    """What is piped into it."""
    inner: list[Command] = field(default_factory=list)
    """Commands whose output stands in its words."""


@dataclass(slots=True)
class Script:
    """What a command text consists of, in the order it stands there."""

    commands: list[Command] = field(default_factory=list)
    functions: dict[str, list[Command]] = field(default_factory=dict)
    odd: set[str] = field(default_factory=set)
    """Constructs that are not understood here; none in plain commands."""
    broken: bool = False
    """The text does not parse."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold the number of a process, as OWN_PROCESS or PARENT."""


def parse(text: str, *, home: Path, cwd: Path, numbers: Mapping[str, str] = MappingProxyType({})) -> Script:
    """Parses a command text.

    Args:
        text: as the shell would get it.
        home: stands in for `~` and `$HOME`.
        cwd: stands in for `$PWD`.
        numbers: of the script in which this text is one word (`trap 'kill $SERVER' EXIT`).
    """
    source = text.encode("utf-8", "replace")
    known = {**numbers, **numbers_in(text)}
    reader = _Reader(source, {**known, "HOME": str(home), "PWD": str(cwd)})
    reader.script.numbers = known
    root = _tree(source)
    if root is None or b"\0" in source:
        reader.script.broken = True
        return reader.script
    reader.script.broken = root.has_error or _skips_text(root, source)
    try:
        reader.visit(root)
    except RecursionError:
        reader.script.broken = True
    return reader.script


_LOCAL = threading.local()
_LONG, _SECONDS, _MOST_NODES = 4096, 0.25, 50_000
_DEEPEST, _LONGEST_PIPE = 200, 200
"""Levels that are looked at (Pythons differ in how deep a function may call itself), and commands in one pipe."""
_LONE_DASH = re.compile(rb"(?<=[ \t])-(?=[ \t]*(?:\d?[<>]&?[ \t]*[\w./-]+[ \t]*)*<<)")
_AS_LETTERS = bytes(code if code in b"\t\n" or 0x20 <= code < 0x7F else ord("u") for code in range(256))


def _tree(source: bytes) -> Node | None:
    """The parse tree; None when it takes too long.

    The parser's scanner crashes on characters beyond ASCII after `{`, takes blanks that bash does not for blanks, and
    loses a lone `-` before a here-document: it is given letters for all of these. The places in the text stay the same.
    """
    shown = _LONE_DASH.sub(b"u", source.translate(_AS_LETTERS))
    if not hasattr(_LOCAL, "parser"):
        _LOCAL.parser = _new_parser()
    parser: Parser = _LOCAL.parser
    if len(shown) <= _LONG:
        return parser.parse(shown).root_node
    end = time.monotonic() + _SECONDS
    try:
        return parser.parse(
            lambda offset, point: shown[offset : offset + 65536],
            progress_callback=lambda offset, error: time.monotonic() > end,
        ).root_node
    except ValueError:
        del _LOCAL.parser
        return None


def _new_parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _skips_text(root: Node, source: bytes) -> bool:
    """Whether the parser passed over anything but blanks: then the shell reads another command than it did.

    Also true of a text with too many nodes to be looked at.
    """
    cursor, end, count = root.walk(), 0, 0
    while True:
        count += 1
        if count > _MOST_NODES:
            return True
        body = cursor.node is not None and cursor.node.type == "heredoc_body"
        if cursor.goto_first_child():
            first = cursor.node
            if body and first is not None and not _RUNS_INSIDE.search(source[end : first.start_byte]):
                end = first.start_byte  # text before the first variable is no node of its own
            continue
        node = cursor.node
        if node is not None:
            gap = source[end : node.start_byte].replace(b"\\\n", b"")
            if gap.strip(b" \t\n") or (b"\n" in gap and _crosses_an_end(node)):
                return True
            before = source[max(0, node.start_byte - 2) : node.start_byte]
            if node.type == "comment" and (before.endswith(b"\\\n") or before[-1:] not in b" \t\n;&|()`"):
                return True  # no comment to the shell
            end = max(end, node.end_byte)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return bool(source[end:].replace(b"\\\n", b"").strip(b" \t\n"))


_RUNS_INSIDE = re.compile(rb"\$[({]|`")
_ONE_LINE = frozenset(
    {
        "command", "command_name", "concatenation", "variable_assignment", "variable_assignments", "ansi_c_string",
        "declaration_command", "unset_command", "file_redirect", "herestring_redirect", "simple_expansion",
        "raw_string", "negated_command",
    }
)  # fmt: skip


def _crosses_an_end(node: Node) -> bool:
    """Whether a line's end lies before this node within something that a line's end would finish."""
    above = node.parent
    while above is not None and above.start_byte == node.start_byte:
        above = above.parent
    return above is not None and above.type in _ONE_LINE


class _Reader:
    def __init__(self, source: bytes, variables: dict[str, str]) -> None:
        self.source = source
        self._reader = WordReader(source, variables)
        self.script = Script()
        self._depth = 0

    def visit(self, node: Node, stdin: Stdin = "none", upstream: Iterable[Command] = ()) -> list[Command]:
        """Adds the commands under a node; returns them."""
        begin = len(self.script.commands)
        if self._depth >= _DEEPEST:
            self.script.broken = True
            return []
        self._depth += 1
        self._look(node)
        self._depth -= 1
        found = self.script.commands[begin:]
        if stdin != "none":
            for command in found:
                if command.stdin == "none":
                    command.stdin = stdin
                command.upstream.extend(upstream)
        return found

    def _look(self, node: Node) -> None:
        handler = self._handlers().get(node.type)
        if handler:
            handler(node)
        elif node.type in _NESTING or node.type == "ERROR":
            for child in node.named_children:
                self.visit(child)
        elif node.type == "raw_string":
            if "$(" in self._reader.text(node) or "`" in self._reader.text(node):
                self.script.odd.add("quoted substitution")  # a test or a calculation would run it
        elif node.type not in _LEAVES:
            self.script.odd.add(node.type)
            for child in node.named_children:
                self.visit(child)

    @functools.cache  # noqa: B019 - one reader lives for one parse
    def _handlers(self) -> dict[str, Callable[[Node], object]]:
        return {
            "command": self._command,
            "pipeline": self._pipeline,
            "redirected_statement": self._redirected,
            "heredoc_redirect": lambda node: self._redirect(node, self._new(Command())),
            "file_redirect": lambda node: self._redirect(node, self._new(Command())),
            "herestring_redirect": lambda node: self._redirect(node, self._new(Command())),
            "variable_assignment": lambda node: self._assignment(node, self._new(Command())),
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "function_definition": self._function,
            "for_statement": self._loop,
        }

    def _new(self, command: Command) -> Command:
        self.script.commands.append(command)
        return command

    def _command(self, node: Node) -> Command:
        command = self._new(Command())
        group: list[Node] = []
        end = node.start_byte
        for child in node.children:
            gap = self.source[end : child.start_byte].replace(b"\\\n", b"")
            end = child.end_byte
            if group and gap:
                command.words.extend(self._words(group, command))
                group = []
            if gap.strip(b" \t"):
                self.script.broken = True  # the parser passed over a word, or over the end of the command
            if child.type == "variable_assignment":
                self._assignment(child, command)
            elif child.type in _REDIRECTS:
                self._redirect(child, command)
            elif child.is_named and child.type != "comment":
                group.append(child.children[0] if child.type == "command_name" else child)
        if group:  # what touches is one word, whatever the parser made of it
            command.words.extend(self._words(group, command))
        return command

    def _pipeline(self, node: Node) -> None:
        before: list[Command] = []
        piped = bool(node.children) and not node.children[0].is_named
        self.script.broken |= len(node.named_children) > _LONGEST_PIPE
        for child in node.named_children:
            before += self.visit(child, "pipe" if before or piped else "none", before[-_LONGEST_PIPE:])

    def _redirected(self, node: Node) -> None:
        bodies = [child for child in node.named_children if child.type not in _REDIRECTS]
        found = [command for body in bodies for command in self.visit(body)]
        plain = len(bodies) == 1 and bodies[0].type == "command" and found
        target = found[0] if plain else self._new(Command(upstream=list(found)))
        for child in node.named_children:
            if child.type in _REDIRECTS:
                self._redirect(child, target)
        if not plain and target.stdin != "none":
            for command in found:
                if command.stdin == "none":
                    command.stdin, command.text = target.stdin, target.text

    def _redirect(self, node: Node, command: Command) -> None:
        if node.type == "heredoc_redirect":
            self._heredoc(node, command)
            return
        words = [child for child in node.named_children if child.type != "file_descriptor"]
        sign = next((child.type for child in node.children if not child.is_named), "")
        if node.type == "file_redirect":
            for child in words[1:]:  # the parser takes the command's further words for targets
                command.words.extend(self._words([child], command))
            words = words[:1]
        for child in words:
            for word in self._words([child], command):
                if node.type == "herestring_redirect":
                    command.stdin, command.text = "text", word
                elif sign == "<":
                    command.stdin = "file"
                    command.reads.append(word)
                elif sign in _WRITING and not (sign == ">&" and re.fullmatch(r"\d+|-|\d+-", word.text)):
                    command.writes.append(word)

    def _heredoc(self, node: Node, command: Command) -> None:
        text, quoted = "", False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = any(sign in self._reader.text(child) for sign in "'\"\\")
            elif child.type == "heredoc_body":
                text = self._reader.text(child)
                if not quoted:
                    command.inner.extend(self.visit(child))
        known = quoted or not re.search(r"(?<!\\)[$`]", text)
        command.stdin, command.text = "text", Word(text if known else text + UNKNOWN)
        for child in node.named_children:
            if child.type in _REDIRECTS:
                self._redirect(child, command)
            elif child.type == "pipeline":
                self.visit(child, "pipe", [command])
            elif child.type not in ("heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"):
                if child.type in _LEAVES or child.type in ("string", "concatenation", "expansion", "simple_expansion"):
                    command.words.extend(self._words([child], command))
                else:
                    self.visit(child)

    def _assignment(self, node: Node, command: Command) -> None:
        name = node.named_children[0] if node.named_children else None
        command.assigned.append(self._reader.text(name) if name is not None else "")
        for child in node.named_children[1:]:
            command.inner.extend(self.visit(child))

    def _declaration(self, node: Node) -> None:
        command = self._new(Command(words=[Word(self._reader.text(node.children[0]))]))
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, command)
            elif child.type == "variable_name":
                command.assigned.append(self._reader.text(child))
            else:
                command.words.extend(self._words([child], command))

    def _loop(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "variable_name":
                self._new(Command(assigned=[self._reader.text(child)]))
            elif child.type == "do_group":
                self.visit(child)
            else:
                self._words([child], self._new(Command()))

    def _function(self, node: Node) -> None:
        name = self._reader.text(node.named_children[0]) if node.named_children else ""
        body = [command for child in node.named_children[1:] for command in self.visit(child)]
        self.script.functions[name] = body

    def _words(self, nodes: Sequence[Node], command: Command) -> list[Word]:
        """The words of touching nodes; what substitutions in them run becomes commands of the script."""
        inner: list[Node] = []
        words = self._reader.words(nodes, inner)
        for node in inner:
            command.inner.extend(self.visit(node))
        return words
