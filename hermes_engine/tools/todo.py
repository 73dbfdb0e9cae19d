"""Tool `todo`: the plan an agent keeps for itself, shown to the person. Written as a whole, so never half updated."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from hermes_engine.messages import Display, ToolResult
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import tool
from hermes_engine.tools.workspace import Step

_SIGNS = {"open": "[ ]", "active": "[>]", "done": "[x]"}


class TodoItem(BaseModel):
    """One step."""

    text: str
    state: Literal["open", "active", "done"] = "open"


@tool("todo", "Plan")
async def todo(ctx: ToolContext, items: list[TodoItem] | None = None) -> ToolResult:
    """Keep a plan for work of several steps: send the whole list each time. Without items: read it.

    Args:
        items: All steps in order, at most one of them active.
    """
    if items is not None:
        ctx.workspace.plan = tuple(Step(" ".join(item.text.split()), item.state) for item in items)
    plan = ctx.workspace.plan
    lines = "\n".join(f"{_SIGNS[step.state]} {step.text}" for step in plan)
    done = sum(step.state == "done" for step in plan)
    active = next((step.text for step in plan if step.state == "active"), "")
    display = Display("Plan", active, f"{done}/{len(plan)} done", "list", lines)
    return ToolResult(lines or "[the plan is empty]", display=display, data={"done": done, "total": len(plan)})
