"""How a task or an agent ended, and the words for it: made of an event heard now or of a record kept earlier, so that
the app, the plain shell and the command line tell the same. Knows no front end and no store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_engine.messages import Usage
from hermes_tui.cleaning import one_line
from hermes_tui.commands.listing import money, span, thousands
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.events import AgentFinished
    from hermes_engine.store.agents import AgentRecord

TASK_KINDS = ("background", "child", "worker")
"""Agents whose end is told to the chat they belong to."""

MAX_FILES = 5
PROMPT_LINES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """An agent that has ended.

    Attributes:
        id, name, kind, state: as in `events.AgentFinished`.
        prompt: its task.
        answer, error: what came of it.
        usage: of all of it.
        seconds: how long it took.
        files: what its tools wrote.
        note: where its work lies, one line.
    """

    id: str
    name: str
    kind: str
    state: str
    prompt: str
    answer: str
    error: str
    usage: Usage
    seconds: float
    files: tuple[str, ...] = ()
    note: str = ""

    @property
    def interrupted(self) -> bool:
        """Whether it can be gone on with."""
        return self.state in ("interrupted", "handed over")

    @property
    def heading(self) -> str:
        """`ag_12ab done · 12s · 3.1k tokens · $0.02`, without the name."""
        parts = [f"{self.id} {state_words(self.state)}", span(self.seconds)]
        if self.usage.total_tokens:
            parts.append(_("{count} tokens").format(count=thousands(self.usage.total_tokens)))
        if self.usage.cost_known and self.usage.cost_usd:
            parts.append(money(self.usage))
        return " · ".join(parts)

    @property
    def task(self) -> str:
        """The first lines of its prompt."""
        lines = self.prompt.strip().split("\n")
        return "\n".join(lines[:PROMPT_LINES]) + ("\n…" if len(lines) > PROMPT_LINES else "")

    def remains(self) -> Iterator[str]:
        """What is to be known besides the answer, a line each: why it ended, what it wrote, how to go on."""
        if self.error and self.state != "done":
            yield one_line(self.error, 400)
        if self.files:
            more = len(self.files) - MAX_FILES
            names = ", ".join(one_line(name, 80) for name in self.files[:MAX_FILES])
            told = ngettext("{names} and {n} more", "{names} and {n} more", more) if more > 0 else "{names}"
            yield _("wrote {files}").format(files=told.format(names=names, n=more))
        if self.note:
            yield one_line(self.note, 200)
            branch = self.note.removeprefix("branch ").partition(": ")[0]
            if branch.startswith("hermes/"):
                yield _("`git merge {branch}` takes it over").format(branch=one_line(branch))
        if self.interrupted:
            words = _("/retry {name} runs it again; `hermes tasks resume {id}` goes on with it")
            yield words.format(name=self.name, id=self.id)


def heard(event: AgentFinished) -> Outcome:
    """The outcome an event tells of."""
    return Outcome(
        event.agent, event.name, event.kind, event.state, event.prompt, event.answer, event.error, event.usage,
        event.seconds, event.files_changed, event.note,
    )  # fmt: skip


def kept(record: AgentRecord) -> Outcome:
    """The outcome a record tells of; of one that lives, how long it has worked."""
    began = record.started or record.created
    return Outcome(
        record.id, record.name, record.kind, record.state, record.prompt, record.answer, record.error, record.usage,
        max(0.0, (record.ended or time.time()) - began), record.files, record.note,
    )  # fmt: skip


def told(event: AgentFinished) -> bool:
    """Whether an end is news for a chat: not that of a chat, of a child whose parent reports, of one gone on with."""
    return event.kind in TASK_KINDS and bool(event.owner) and not event.bound and event.state != "handed over"


def state_words(state: str) -> str:
    """An agent's state in the person's language."""
    return _(state.replace("_", " "))
