"""What the engine asks a person, and the one broker through which any front end answers, by id.

Knows no screen: it hands a request to the asker's `emit` and waits. Cancelling answers "no". Where nobody
can answer (`attended=False`) a request is denied at once and never waits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from hermes_engine.events import ApprovalAsked, Emitter, QuestionAsked, RequestSettled

Choice = Literal["once", "session", "always", "no", "answer"]

ASKS = (ApprovalAsked, QuestionAsked, RequestSettled)
"""What is said of a request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer.

    Attributes:
        choice: once | session | always | no for an approval; answer | no for a question.
        note: why not, or the text of the answer.
        answered: False when nobody could answer or the request was withdrawn.
    """

    choice: Choice
    note: str = ""
    answered: bool = True

    @property
    def yes(self) -> bool:
        """Whether the call may run."""
        return self.choice in ("once", "session", "always")


UNATTENDED = Answer("no", "nobody is here to answer", answered=False)
WITHDRAWN = Answer("no", "the question was withdrawn", answered=False)


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that waits for a yes; fields as in `events.ApprovalAsked`."""

    call_id: str
    name: str
    title: str
    detail: str
    reason: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the agent; `choices` may be empty for free text."""

    call_id: str
    question: str
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Waiting:
    agent: str
    event: ApprovalAsked | QuestionAsked
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Answer] = field(repr=False)
    alike: Hashable = None


class Broker:
    """Holds what waits for a person. `answer` and `withdraw` may be called from any thread."""

    def __init__(self, *, attended: bool) -> None:
        self.attended = attended
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}

    async def ask(self, request: Approval | Question, emit: Emitter, alike: Hashable = None) -> Answer:
        """Emits the request, waits for its answer, emits `RequestSettled`; cancellation counts as "no".

        A yes for the session answers all that wait with an equal `alike`.
        """
        if not self.attended:
            return UNATTENDED
        loop = asyncio.get_running_loop()
        key = f"req_{secrets.token_hex(4)}"
        future: asyncio.Future[Answer] = loop.create_future()
        answer = WITHDRAWN
        kind: type[ApprovalAsked] | type[QuestionAsked]
        kind = ApprovalAsked if isinstance(request, Approval) else QuestionAsked
        values = {"request": key, **dataclasses.asdict(request)}
        event = kind(session=emit.session, run=emit.run, agent=emit.agent, **values)
        with self._lock:
            self._waiting[key] = _Waiting(emit.agent, event, loop, future, alike)
        try:
            emit(kind, **values)
            answer = await future
            return answer
        finally:
            with self._lock:
                self._waiting.pop(key, None)
            emit(RequestSettled, request=key, choice=answer.choice, note=answer.note)

    def answer(self, key: str, answer: Answer) -> bool:
        """Settles a request. False when it no longer waits (answered, withdrawn, unknown)."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                return False
            settled = [(waiting, answer)]
            if waiting.alike is not None and answer.choice in ("session", "always"):
                like = [other for other, item in self._waiting.items() if item.alike == waiting.alike]
                settled += [(self._waiting.pop(other), Answer("session")) for other in like]
        for item, told in settled:
            item.loop.call_soon_threadsafe(_settle, item.future, told)
        return True

    def withdraw(self, agent: str | None = None) -> int:
        """Answers "no" to all requests (of one agent); returns how many."""
        with self._lock:
            keys = [key for key, item in self._waiting.items() if agent is None or item.agent == agent]
        return sum(self.answer(key, WITHDRAWN) for key in keys)

    def pending(self) -> tuple[ApprovalAsked | QuestionAsked, ...]:
        """What waits now, oldest first."""
        with self._lock:
            return tuple(item.event for item in self._waiting.values())


def _settle(future: asyncio.Future[Answer], answer: Answer) -> None:
    if not future.done():
        future.set_result(answer)
