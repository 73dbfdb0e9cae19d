"""Which toolsets exist and which tools each names (contract, section 3). Pure data: settings check names
against it without loading a tool.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes_engine.errors import UnknownName

TOOLSETS: dict[str, tuple[str, ...]] = {
    "terminal": ("terminal", "process"),
    "file": ("read_file", "write_file", "patch", "search_files"),
    "web": ("web_fetch", "web_search"),
    "todo": ("todo",),
    "clarify": ("clarify",),
    "session_search": ("session_search",),
    "delegation": ("spawn_agent", "spawn_parallel"),
    "kanban": (
        "kanban_create",
        "kanban_list",
        "kanban_show",
        "kanban_claim",
        "kanban_complete",
        "kanban_block",
        "kanban_unblock",
        "kanban_comment",
        "kanban_link",
        "kanban_heartbeat",
        "kanban_request_review",
        "kanban_profiles",
    ),
}
"""Toolset name → tool names, in the order in which they stand in a request."""

BY_NAME_ONLY = frozenset({"kanban"})
"""Sets that `all` and `*` never include: they cost tokens, so a person names them."""

OF_WORKERS = frozenset({"kanban_complete"})
"""Tools of a set that a chat never has: only who works a card can end it."""

EVERYTHING = ("all", "*")

PERSONAL = frozenset({"session_search"})
"""Sets that look into a person's own chats: rows of a batch run, which are foreign text, never have them."""

SIDE_BY_SIDE = frozenset(
    {"read_file", "search_files", "web_fetch", "web_search", "session_search", "spawn_agent", "spawn_parallel"}
)
"""Tools whose neighbouring calls of one reply run at the same time: they change nothing, or are asked for because work
is to go on side by side. All others run one after another in the order asked: `mkdir x` and `touch x/y` may come in
one reply."""


def expand(names: Iterable[str]) -> tuple[str, ...]:
    """Checked toolset names, `all` and `*` replaced, each once, in the order of `TOOLSETS`.

    Raises:
        UnknownName: a name that is neither a toolset nor `all` / `*`.
    """
    wanted: set[str] = set()
    for name in names:
        if name in EVERYTHING:
            wanted |= set(TOOLSETS) - BY_NAME_ONLY
        elif name in TOOLSETS:
            wanted.add(name)
        else:
            raise UnknownName("toolset", name, [*TOOLSETS, *EVERYTHING])
    return tuple(name for name in TOOLSETS if name in wanted)


def typed_names(text: str) -> tuple[str, ...]:
    """Checked toolset names as a person types them: with commas or blanks between, in brackets or not; `[]` is none."""
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1]
    return expand(part.strip("'\"") for part in bare.replace(",", " ").split())


def tools_of(toolsets: Iterable[str]) -> tuple[str, ...]:
    """Names of the tools these sets offer, each once."""
    return tuple(tool for name in expand(toolsets) for tool in TOOLSETS[name])
