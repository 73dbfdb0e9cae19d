"""The tools that are made for each agent, as they look in a request: for saying what a toolset costs."""

from __future__ import annotations

from typing import Any, cast

from hermes_engine.board import this_owner
from hermes_engine.protocols import AgentSpec
from hermes_engine.settings.values import DelegationSettings
from hermes_engine.tools.registry import Tool
from hermes_engine.work.cards import Cards
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.maker import KeepsNothing
from hermes_engine.work.recall import Recall
from hermes_engine.work.supervisor import Supervisor

_NEVER_CALLED = cast("Any", None)


def bound_tools() -> tuple[Tool, ...]:
    """Those a chat has with delegation, kanban and session_search: for looking at, not for calling."""
    spec = AgentSpec("anybody", toolsets=("delegation", "kanban", "session_search"))
    supervisor = Supervisor(lambda event: None)
    settings = DelegationSettings(max_depth=1)
    delegation = Delegation(supervisor, _NEVER_CALLED, KeepsNothing(), _NEVER_CALLED, settings, {})
    cards = Cards(_NEVER_CALLED, _NEVER_CALLED, this_owner())
    recall = Recall(None, _NEVER_CALLED)
    return (*delegation.tools(spec, "anybody"), *cards.tools(spec, "anybody"), *recall.tools(spec))
