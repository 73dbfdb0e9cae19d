"""The near end of one process that works rows elsewhere (`site`): its rows in flight, and what it asks of the run.

Reaches the process through a function that sends; knows neither Ray nor machines. Lives on the run's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import pickle
from collections.abc import Callable
from typing import Any

from hermes_engine.batch.floor import RowAtWork
from hermes_engine.batch.health import Outage
from hermes_engine.batch.job import Row, RowResult
from hermes_engine.batch.pacing import Pace
from hermes_engine.batch.recording import TAPE, Tape
from hermes_engine.batch.rows import RowLost
from hermes_engine.errors import ConfigError, EndpointDown, HermesError, RateLimited, StateError, UsageError
from hermes_engine.events import Emitter, UsageReported
from hermes_engine.messages import NO_USAGE, Message, Usage
from hermes_engine.protocols import AgentSpec, Limits

CLEARING = 2.0
"""Seconds that a cancelled row has to end what it started."""

_KINDS: dict[str, type[HermesError]] = {kind.__name__: kind for kind in (ConfigError, UsageError, StateError)}


class Caller:
    """Stands for a task elsewhere that asks something."""


class InHand:
    """A row that is worked elsewhere; `messages` is its conversation so far."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self.messages: list[Message] = []
        self.usage: Usage = NO_USAGE
        self.callers: dict[int, object] = {}
        if (task := asyncio.current_task()) is not None:
            self.callers[0] = task


class FarVoice:
    """What a row elsewhere speaks through; set from any thread."""

    def __init__(self, set_deltas: Callable[[bool], None]) -> None:
        self._set, self._deltas, self._loop = set_deltas, False, asyncio.get_running_loop()

    @property
    def deltas(self) -> bool:
        """See `events.Emitter`."""
        return self._deltas

    @deltas.setter
    def deltas(self, on: bool) -> None:
        if on != self._deltas:
            self._deltas = on
            self._loop.call_soon_threadsafe(self._set, on)


class Post:
    """One process.

    Args:
        node: where it is.
        send: takes pickled messages to it.
        outage, pace: of the run.
        tell: shows a line that it tells, with its level.

    Attributes:
        ready: whether it takes rows.
        replicas: what became of each server there, as last told.
    """

    def __init__(
        self, node: str, send: Callable[[bytes], None], outage: Outage, pace: Pace, tell: Callable[[str, str], None]
    ) -> None:
        self.node, self.ready = node, False
        self.replicas: list[dict[str, Any]] = []
        self._send, self._outage, self._pace = send, outage, pace
        self._rows: dict[int, InHand] = {}
        self._calls = itertools.count(1)
        self._answers: dict[int, asyncio.Task[None]] = {}
        self._probes: dict[int, asyncio.Future[EndpointDown | None]] = {}
        self._of_the_run: dict[str, Callable[..., None]] = {
            "ask": self._asked,
            "dropped": self._dropped,
            "answered": pace.answered,
            "refused": self._refused,
            "probed": self._probed,
            "replicas": self._count,
            "tell": tell,
            "back": outage.back,
        }

    @property
    def load(self) -> int:
        """How many rows it works."""
        return len(self._rows)

    def _say(self, *what: Any) -> None:
        self._send(pickle.dumps(what))

    async def run_row(self, row: Row, limits: Limits, at_work: RowAtWork) -> RowResult:
        """Works a row there; see `rows.Workers`."""
        call, hand = next(self._calls), InHand()
        self._rows[call] = hand
        try:
            self._say("row", call, row, limits)
            return await self._followed(call, hand, at_work)
        except asyncio.CancelledError:
            self._say("cancel", call)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLEARING):
                    while (await hand.heard.get())[0] not in ("ended", "failed", "lost"):
                        pass
            raise
        finally:
            del self._rows[call]

    async def _followed(self, call: int, hand: InHand, at_work: RowAtWork) -> RowResult:
        """Hears a row to its end, in the task of who works it: what it meets counts for that one."""
        while True:
            what, *values = await hand.heard.get()
            if what == "event":
                event = values[0]
                if isinstance(event, UsageReported):
                    hand.usage += event.usage
                at_work(event)
                at_work.heard = Emitter.clock()  # the clock there may be another
            elif what == "begun":
                at_work.begun(FarVoice(lambda on: self._say("deltas", call, on)), hand)
            elif what == "messages":
                hand.messages[values[0] :] = values[1]
            elif what == "ended":
                result: RowResult = values[0]
                tape: Tape | None = values[1]
                if tape is not None and (own := TAPE.get()) is not None:
                    own.exchanges, own.window = tape.exchanges, tape.window
                return result
            elif what == "failed":
                kind, text, hint = values
                raise _KINDS[kind](text, hint=hint)
            elif what == "lost":
                raise values[0] or RowLost(hand.usage)

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """Has it ask the model something small; the error when nobody answers."""
        number = next(self._calls)
        answer: asyncio.Future[EndpointDown | None] = asyncio.get_running_loop().create_future()
        self._probes[number] = answer
        try:
            self._say("probe", number, spec)
            return await answer
        finally:
            del self._probes[number]

    def hear(self, said: list[tuple[Any, ...]]) -> None:
        """Takes what has happened there."""
        for what, *values in said:
            if what not in self._of_the_run:
                if (hand := self._rows.get(values[0])) is not None:
                    hand.heard.put_nowait((what, *values[1:]))
            else:
                self._of_the_run[what](*values)

    def _asked(self, number: int, *question: Any) -> None:
        self._answers[number] = asyncio.create_task(self._answer(number, *question))

    def _dropped(self, number: int) -> None:
        if (task := self._answers.get(number)) is not None:
            task.cancel()

    def _refused(self, reckoned: float, retry_after: float | None) -> None:
        self._pace.refused(reckoned, RateLimited("429", retry_after=retry_after))

    def _probed(self, number: int, told: tuple[Any, ...] | None) -> None:
        if (answer := self._probes.get(number)) is not None and not answer.done():
            answer.set_result(_down(*told) if told else None)

    def _count(self, figures: list[dict[str, Any]]) -> None:
        self.replicas = figures

    async def _answer(self, number: int, call: int, caller: int, what: str, *values: Any) -> None:
        """Asks the run what a task there wants to know."""
        try:
            answer: Any
            if what == "turn":
                answer = await self._pace.turn(*values)
            else:
                hand = self._rows.get(call)
                asking = hand.callers.setdefault(caller, Caller()) if hand is not None else Caller()
                try:
                    await self._outage.wait_out(_down(*values), asking)
                    answer = True
                except EndpointDown:
                    answer = False
            self._say("answer", number, answer)
        finally:
            self._answers.pop(number, None)

    def lost(self, fault: StateError | None = None) -> int:
        """It is no more; how many rows are lost with it. `fault`: why the run cannot go on."""
        self.ready = False
        for hand in self._rows.values():
            hand.heard.put_nowait(("lost", fault))
        for task in list(self._answers.values()):
            task.cancel()
        for answer in self._probes.values():
            if not answer.done():
                answer.set_result(EndpointDown("the process that asked is gone"))
        return len(self._rows)


def _down(text: str, status: int | None, retry_after: float | None, hint: str) -> EndpointDown:
    return EndpointDown(text, status=status, retry_after=retry_after, hint=hint)
