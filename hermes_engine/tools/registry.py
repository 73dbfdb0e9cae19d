"""What a tool is, and the table of those that exist. A tool is a typed async function with a docstring.

`@tool` puts one into the table; `make_tool` makes one that belongs to whoever made it (delegation, cards), to
be handed to `build_toolbox` as `extra`. Knows no tool by itself.
"""

from __future__ import annotations

import functools
import importlib
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hermes_engine.messages import ToolResult
from hermes_engine.tools.schema import Signature, signature_of

if TYPE_CHECKING:
    from hermes_engine.tools.workspace import Workspace

Effect = Literal["none", "edit", "command", "fetch", "change", "board"]
"""What permission a tool needs: none = changes nothing, never asks; edit = writes the file in argument `path`;
command = runs the shell text in `command`; fetch = asks the host in `url`; change = changes something else; board =
changes cards, which asks nobody and is refused in plan mode."""

ToolFunction = Callable[..., Awaitable[ToolResult | str]]
Preview = Callable[["Workspace", Mapping[str, Any]], str]
ToolFunctionT = typing.TypeVar("ToolFunctionT", bound=ToolFunction)

_FAMILIES = ("terminal", "reading", "editing", "search", "web", "web_search", "todo", "clarify")
_TABLE: dict[str, Tool] = {}
_LOADED: list[bool] = []


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: as the model calls it.
        toolset: set it belongs to.
        verb: what it does, for people: "Run", "Read".
        function: `(ctx: ToolContext, **arguments)`; returns a result or its text; raises ToolFault to say no.
        effect: what permission it needs.
        title: name of the argument that says on what; "" for none.
        preview: what an approval shows of a call (a diff); the title argument when None.
        aliases: other argument names accepted.
    """

    name: str
    toolset: str
    verb: str
    function: ToolFunction
    effect: Effect = "none"
    title: str = ""
    preview: Preview | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def signature(self) -> Signature:
        """Description, schema and checking of the arguments."""
        return signature_of(self.function, self.aliases)

    @functools.cached_property
    def schema(self) -> Mapping[str, Any]:
        """The definition that goes into a request."""
        parts = self.signature
        return {
            "type": "function",
            "function": {"name": self.name, "description": parts.description, "parameters": parts.parameters},
        }

    def titled(self, arguments: Mapping[str, Any]) -> str:
        """On what a call acts, as given."""
        value = arguments.get(self.title, "") if self.title else ""
        return value if isinstance(value, str) else ""


def make_tool(
    function: ToolFunction,
    toolset: str,
    verb: str,
    *,
    effect: Effect = "none",
    title: str = "",
    preview: Preview | None = None,
    aliases: Mapping[str, str] | None = None,
) -> Tool:
    """A tool from a function; its name is the function's."""
    return Tool(function.__name__, toolset, verb, function, effect, title, preview, aliases or {})


def tool(
    toolset: str,
    verb: str,
    *,
    effect: Effect = "none",
    title: str = "",
    preview: Preview | None = None,
    aliases: Mapping[str, str] | None = None,
) -> Callable[[ToolFunctionT], ToolFunctionT]:
    """Puts the function into the table of tools; see `Tool` for the arguments."""

    def register(function: ToolFunctionT) -> ToolFunctionT:
        made = make_tool(function, toolset, verb, effect=effect, title=title, preview=preview, aliases=aliases)
        _TABLE[made.name] = made
        return function

    return register


def registered() -> Mapping[str, Tool]:
    """Every tool of this package by name. Imports the families, each of which registers itself."""
    if not _LOADED:
        for family in _FAMILIES:
            importlib.import_module(f"hermes_engine.tools.{family}")
        _LOADED.append(True)
    return _TABLE
