"""One child as its parent sees it: its card line, the check of its answer, its entry in the result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hermes_engine.cleaning import one_line
from hermes_engine.errors import ToolFault
from hermes_engine.messages import NO_USAGE, Display, ToolResult, ToolStatus, Usage
from hermes_engine.tools.context import ToolContext
from hermes_engine.waiting import to_its_end
from hermes_engine.work.answers import checked_answer, repair_prompt, schema_fault
from hermes_engine.work.conversation import Conversation
from hermes_engine.work.supervisor import Supervisor
from hermes_engine.work.tasks import Task, results_text

_STATUS = {"done": "ok", "failed": "error", "timeout": "timeout", "cancelled": "cancelled", "max_turns": "max_turns"}
_SIGNS = {"ok": "✓", "cancelled": "■"}


class Check:
    """Whether a child's answer follows the schema it was given. Raises ToolFault for what is no schema.

    `fault_of`: what else is wrong with the JSON text of an answer that follows it, "" for nothing.
    """

    def __init__(self, schema: dict[str, Any], fault_of: Callable[[str], str] | None = None) -> None:
        if fault := schema_fault(schema):
            raise ToolFault(fault)
        self._schema, self._fault_of = schema, fault_of
        self.asked = False

    @property
    def told(self) -> str:
        """What the child reads about it."""
        return f"Answer with one JSON value that follows this schema: {json.dumps(self._schema, ensure_ascii=False)}"

    def __call__(self, answer: str) -> str:
        """What to ask once more, "" when the answer is good."""
        text, fault = checked_answer(answer, self._schema)
        if not fault and self._fault_of is not None:
            fault = self._fault_of(text)
        return repair_prompt(fault, self._schema) if fault else ""

    def settle(self, entry: dict[str, Any]) -> None:
        """Puts the JSON itself into the entry, and whether it is valid."""
        entry["answer"], fault = checked_answer(entry["answer"], self._schema)
        entry["schema_valid"] = not fault


class Child:
    """A started child and what it was asked."""

    def __init__(self, conversation: Conversation, check: Check | None, supervisor: Supervisor) -> None:
        self.conversation, self._check, self._supervisor = conversation, check, supervisor
        self.usage = NO_USAGE
        """What it has cost with all below it, once it has ended."""

    async def ended(self) -> None:
        """Waits for its end, also when a person gave it more to do; cancelling ends the child first."""
        talk = self.conversation
        while True:
            agent, task = talk.agent_id, talk.task
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                await to_its_end(task)
                raise
            finally:
                row = self._supervisor.row(agent)
                self.usage += row.usage if row else NO_USAGE
            if talk.task is task:
                return

    def report(self, entry: dict[str, Any]) -> None:
        """Fills in its entry of the result."""
        ending = self.conversation.ending(self.conversation.task.result())
        entry["agent_id"] = self.conversation.agent_id
        entry["status"] = _STATUS.get(ending.state, "error")
        entry["answer"] = ending.answer
        entry["turns"] = self.conversation.steps
        entry["tokens"] = self.usage.total_tokens
        entry["error"] = ending.error or None
        entry["files_changed"] = list(ending.files_changed)
        if ending.note:
            entry["workspace"] = ending.note
        if self._check is not None:
            self._check.settle(entry)


def not_begun(index: int) -> dict[str, Any]:
    """The entry of a task in the result, as long as nothing came of it."""
    return {
        "index": index, "agent_id": "", "status": "cancelled", "answer": "", "turns": 0, "tokens": 0, "seconds": 0.0,
        "error": "stopped before it began", "files_changed": [],
    }  # fmt: skip


class Told:
    """Shows on the caller's card who is at work."""

    def __init__(self, ctx: ToolContext, count: int) -> None:
        self._ctx, self._names, self._ended = ctx, [""] * count, 0

    @property
    def names(self) -> str:
        """Of all children started so far: `3 agents — scout, fixer`, or the one's name."""
        named = ", ".join(name for name in self._names if name)
        return f"{len(self._names)} agents — {named}" if len(self._names) > 1 else named

    def name(self, index: int) -> str:
        """Of one."""
        return self._names[index] or f"#{index + 1}"

    def line(self, entry: Mapping[str, Any]) -> str:
        """One child's outcome for a person."""
        words = one_line(entry["answer"] or entry["error"] or "", 200)
        return f"{_SIGNS.get(entry['status'], '✗')} {self.name(entry['index'])}  {words}"

    def started(self, index: int, name: str) -> None:
        """One is there."""
        self._names[index] = name
        self._show()

    def ended(self, index: int, status: str) -> None:
        """One has ended."""
        self._ended += 1
        self._show()

    def result(
        self, entries: Sequence[dict[str, Any]], tasks: Sequence[Task], usage: Usage, status: ToolStatus
    ) -> ToolResult:
        """What the caller gets, and what its card says then."""
        failed = sum(entry["status"] != "ok" for entry in entries)
        stopped = sum(entry["status"] == "cancelled" for entry in entries)
        counts = (len(entries) - failed, "ok"), (failed - stopped, "failed"), (stopped, "stopped")
        summary = ", ".join(f"{count} {word}" for count, word in counts if count)
        named = self.names if len(tasks) > 1 else one_line(f"{self.names} — {tasks[0].prompt}".lstrip(" —"), 200)
        body = "\n".join(self.line(entry) for entry in entries)
        data = {"agents": [entry["agent_id"] for entry in entries], "ok": len(entries) - failed, "failed": failed}
        return ToolResult(results_text(entries), status, Display("Spawned", named, summary, "list", body), data, usage)

    def _show(self) -> None:
        self._ctx.progress(f"{self.names}  {self._ended}/{len(self._names)} ended")
