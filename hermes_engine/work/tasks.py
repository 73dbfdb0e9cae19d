"""What an agent may ask of a child, and how the children's results are handed back (contract, section 3). Pure data."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from hermes_engine.cleaning import clean_for_model, one_line
from hermes_engine.errors import ToolFault
from hermes_engine.protocols import AgentSpec
from hermes_engine.settings.values import DEFAULT_TOOLSETS
from hermes_engine.tools.result import MOST
from hermes_engine.toolsets import EVERYTHING, TOOLSETS, expand

ROOM = MOST - 1_500
"""Characters of a result as a whole: it must reach the model uncut, since it is JSON."""

_TOLD = ((40, 1000, 400), (10, 200, 200), (3, 100, 100), (0, 0, 60), (0, 0, 12))
"""Files, characters of a name and of an error: what an entry may hold, the fewer the less room there is."""

_SHORTEST = 10
"""Characters an answer is not cut below."""

_NEVER_FOR_CHILDREN = frozenset({"clarify"})
"""Sets an agent's child has not: it asks its parent's words, not the person."""


def from_json(value: Any) -> Any:
    """An object or list that came as JSON text, as several models send it."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def said(value: Any) -> Any:
    """The same, and nothing for a blank text: several models fill in every argument."""
    return None if isinstance(value, str) and not value.strip() else from_json(value)


def named(value: Any) -> Any:
    """Names that came as one text instead of a list: JSON, or with commas between them. A blank one says nothing."""
    made = said(value)
    return [name for part in made.split(",") if (name := part.strip())] if isinstance(made, str) else made


class Task(BaseModel):
    """One child's work."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    prompt: str = Field(validation_alias=AliasChoices("prompt", "goal"))
    context: str | None = None
    profile: str | None = None
    model: str | None = None
    toolsets: Annotated[list[str] | None, BeforeValidator(named)] = None
    max_turns: int | None = None
    timeout_seconds: float | None = None
    output_schema: Annotated[dict[str, Any] | None, BeforeValidator(said)] = None
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
    """The object both tools return, as JSON text that the model gets uncut.

    Long answers are cut inside `answer`, equally long ones equally; where so many entries leave no room even so,
    errors and lists of files are cut too.
    """
    for told in _TOLD:
        text = _fitted([_trimmed(entry, *told) for entry in entries])
        if len(text) <= ROOM:
            break
    return text


def _fitted(told: list[dict[str, Any]]) -> str:
    ok = sum(entry["status"] == "ok" for entry in told)
    answers = [entry["answer"] for entry in told]
    empty = json.dumps([{**entry, "answer": ""} for entry in told], ensure_ascii=False)
    limit = _fair([len(answer) for answer in answers], ROOM - len(empty))
    while True:
        cut = [{**entry, "answer": _cut(answer, limit)} for entry, answer in zip(told, answers, strict=True)]
        text = json.dumps({"results": cut, "ok": ok, "failed": len(told) - ok}, ensure_ascii=False)
        if len(text) <= ROOM or limit <= _SHORTEST:
            return text
        limit = limit * 9 // 10  # quotes and line ends take two characters


def _fair(sizes: Sequence[int], room: int) -> int:
    """The largest limit under which the sizes, each cut to it, add up to no more than `room`."""
    for place, size in enumerate(sorted(sizes)):
        share = max(room, 0) // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _trimmed(entry: Mapping[str, Any], files: int, name: int, error: int) -> dict[str, Any]:
    """The entry with so many files, and so many characters of each name and of the error."""
    changed = entry["files_changed"]
    names = [one_line(file[: 2 * name], name) for file in changed[:files]]
    if len(changed) > files:
        names.append(f"… and {len(changed) - files} more" if files else f"{len(changed)} files")
    why = entry["error"] and one_line(entry["error"], error)
    told = {**entry, "answer": clean_for_model(_cut(entry["answer"], ROOM)), "files_changed": names, "error": why}
    return {**told, "workspace": one_line(entry["workspace"], error)} if "workspace" in entry else told


def _cut(answer: str, limit: int) -> str:
    if len(answer) <= limit:
        return answer
    mark = "\n[… cut here …]\n"
    if limit < 3 * len(mark):
        return f"{answer[: max(limit, _SHORTEST)]}…"
    room = limit - len(mark)
    head = room * 2 // 3
    return answer[:head] + mark + answer[len(answer) - (room - head) :]
