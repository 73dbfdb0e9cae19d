"""Tool `clarify`: the agent asks the person. Where nobody can answer it hears so at once and decides itself."""

from __future__ import annotations

from hermes_engine.errors import ToolFault
from hermes_engine.messages import Display, ToolResult
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import tool

_MOST_CHOICES = 9


@tool("clarify", "Ask", title="question")
async def clarify(ctx: ToolContext, question: str, choices: list[str] | None = None) -> ToolResult:
    """Ask the user something you cannot find out yourself and must know to go on.

    Args:
        question: One clear question.
        choices: Likely answers, if there are few. The user may answer otherwise.
    """
    if not question.strip():
        raise ToolFault("the question is empty")
    offered = [choice for choice in (choices or []) if choice.strip()][:_MOST_CHOICES]
    answer = await ctx.ask(question, offered)
    display = Display("Ask", question, body="\n".join(offered))
    if not answer.answered:
        raise ToolFault(f"no answer: {answer.note}; choose the most sensible way yourself and say what you assumed")
    if answer.choice == "no":
        return ToolResult("[the user does not want to answer; go on with what you know]", display=display)
    shown = Display("Ask", question, answer.note[:60], body=answer.note)
    return ToolResult(answer.note or "[an empty answer]", display=shown)
