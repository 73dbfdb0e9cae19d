"""What a toolset costs: the tokens its tools' definitions take in every request. Knows no front end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hermes_engine.protocols import ToolSchema
from hermes_engine.toolsets import tools_of
from hermes_tui.texts import ngettext

CHARACTERS_A_TOKEN = 4
"""Rough, alike for all models; definitions are plain English and JSON."""


def tokens_of(toolsets: Sequence[str]) -> int:
    """Tokens that the definitions of these sets' tools take in each request, about."""
    return sum(len(json.dumps(schema)) for schema in _offered(toolsets)) // CHARACTERS_A_TOKEN


def _offered(toolsets: Sequence[str]) -> list[ToolSchema]:
    """What of these sets stands in a chat's request."""
    from hermes_engine.tools.registry import registered
    from hermes_engine.work.offered import bound_tools

    known = {**registered(), **{tool.name: tool for tool in bound_tools()}}
    return [known[name].schema for name in tools_of(toolsets) if name in known]


def cost_line(toolset: str) -> str:
    """One line on what enabling a set costs."""
    one = "{n} tool, about {tokens} tokens in every request"
    many = "{n} tools, about {tokens} tokens in every request"
    line = ngettext(one, many, len(_offered([toolset])))
    return "  " + line.format(n=len(_offered([toolset])), tokens=tokens_of([toolset]))
