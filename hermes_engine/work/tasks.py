"""What an agent may ask of a child, and how the children's results are handed back (contract, section 3). Pure data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from hermes_engine.cleaning import one_line
from hermes_engine.errors import ToolFault
from hermes_engine.protocols import AgentSpec
from hermes_engine.settings.values import DEFAULT_TOOLSETS
from hermes_engine.tools.result import MOST
from hermes_engine.toolsets import EVERYTHING, TOOLSETS, expand

ROOM = MOST - 1_500
"""Characters of a result as a whole: it must reach the model uncut, since it is JSON."""

_FILES_TOLD = 40
_LONGEST_ERROR = 400
_NEVER_FOR_CHILDREN = frozenset({"clarify"})
"""Sets an agent's child has not: it asks its parent's words, not the person."""


class Task(BaseModel):
    """One child's work."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    prompt: str = Field(validation_alias=AliasChoices("prompt", "goal"))
    context: str | None = None
    profile: str | None = None
    model: str | None = None
    toolsets: list[str] | None = None
    max_turns: int | None = None
    timeout_seconds: float | None = None
    output_schema: dict[str, Any] | None = None
    workspace: Literal["shared", "worktree"] = "shared"

    def check(self) -> None:
        """Raises ToolFault for values no child can be started with."""
        if not self.prompt.strip():
            raise ToolFault("the prompt is empty")
        if self.timeout_seconds is not None and not 0 <= self.timeout_seconds < float("inf"):
            raise ToolFault("timeout_seconds must be a number of seconds; 0 or none means the configured limit")
        if self.max_turns is not None and self.max_turns < 1:
            raise ToolFault("max_turns must be 1 or more")

    @property
    def message(self) -> str:
        """The child's first user message: the context, a blank line, and the prompt unchanged."""
        return f"{self.context.strip()}\n\n{self.prompt}" if self.context and self.context.strip() else self.prompt

    @property
    def key(self) -> str:
        """Equal for tasks that ask for the same."""
        return self.model_dump_json()


def toolsets_for(task: Task, parent: AgentSpec, profile: Sequence[str] | None, *, may_spawn: bool) -> tuple[str, ...]:
    """The child's toolsets: never one that its parent lacks.

    A parent that lists only `delegation` hands down the default sets. `profile` holds the sets of another profile.

    Raises:
        ToolFault, UnknownName: a set was asked for by name that does not exist or that this child cannot have.
    """
    offered = set(parent.toolsets)
    if offered == {"delegation"}:
        offered |= set(DEFAULT_TOOLSETS)
    offered -= _NEVER_FOR_CHILDREN if may_spawn else _NEVER_FOR_CHILDREN | {"delegation"}
    if task.toolsets is None:
        wanted = offered if profile is None else offered & set(profile)
    else:
        wanted = offered & set(expand(task.toolsets))
        lacking = [name for name in task.toolsets if name not in EVERYTHING and name not in offered]
        if lacking:
            told = ", ".join(name for name in TOOLSETS if name in offered) or "none"
            raise ToolFault(f"this child cannot have {', '.join(lacking)}; on offer: {told}")
    return tuple(name for name in TOOLSETS if name in wanted)


def results_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """The object both tools return, as JSON text; long answers are cut inside `answer`, equally long ones equally."""
    told = [_trimmed(entry) for entry in entries]
    ok = sum(entry["status"] == "ok" for entry in told)
    whole = {"results": told, "ok": ok, "failed": len(told) - ok}
    limit = ROOM
    while len(text := json.dumps(whole, ensure_ascii=False)) > ROOM and limit > 50:
        limit = _limit([len(entry["answer"]) for entry in told], limit, len(text) - ROOM)
        whole["results"] = told = [{**entry, "answer": _cut(entry["answer"], limit)} for entry in told]
    return text


def _limit(lengths: Sequence[int], before: int, excess: int) -> int:
    """The length to which the longest must be cut so that about `excess` characters go."""
    limit = min(before, max(lengths))
    while limit > 50 and sum(max(0, length - limit) for length in lengths) < excess:
        limit = int(limit * 0.9)
    return limit


def _trimmed(entry: Mapping[str, Any]) -> dict[str, Any]:
    files = list(entry["files_changed"])
    if len(files) > _FILES_TOLD:
        files = [*files[:_FILES_TOLD], f"… and {len(files) - _FILES_TOLD} more"]
    error = entry["error"] and one_line(entry["error"], _LONGEST_ERROR)
    return {**entry, "files_changed": files, "error": error}


def _cut(answer: str, limit: int) -> str:
    if len(answer) <= limit:
        return answer
    mark = "\n[… cut here …]\n"
    room = max(0, limit - len(mark))
    head = room * 2 // 3
    return answer[:head] + mark + answer[len(answer) - (room - head) :]
