"""Works the rows of a run: takes one, has it worked, judges it, has it written. One object for all workers of a loop.

Decides nothing about when the run ends; says what it saw through `Ends`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes_engine.batch.books import Books
from hermes_engine.batch.dataset import Dataset
from hermes_engine.batch.filters import Verdict, invented_tools, judged
from hermes_engine.batch.floor import Floor, RowAtWork
from hermes_engine.batch.forecast import Forecast
from hermes_engine.batch.health import FirstTries, Outage, Rejects
from hermes_engine.batch.job import Job, Record, Row, RowResult
from hermes_engine.batch.ledger import Ledger
from hermes_engine.batch.options import BatchOptions
from hermes_engine.batch.quality import Quality
from hermes_engine.batch.recording import TAPE, Recording, Tape
from hermes_engine.batch.rows import RowLost, Workers, broken
from hermes_engine.batch.schedule import Schedule, Task
from hermes_engine.batch.trajectory import KEPT_STOPS, make_record
from hermes_engine.batch.writer import Writer, now
from hermes_engine.errors import ConfigError, EndpointDown, StateError, UsageError
from hermes_engine.events import Emitter, Event, RowFinished, RowStarted, Sink
from hermes_engine.redaction import Redactor
from hermes_engine.requests import ASKS

MOST_LOSSES = 5
"""How often a row may be lost with the process that worked it before that counts as the row's own fault."""

UNTOLD_USAGES = 3
"""So many rows in a row without a known usage end a run that has a cap."""

CAPS = ("max_cost_usd", "max_total_tokens")
"""Options that cap what all invocations of a run use."""

_PROMPT_SHOWN = 120
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Crew:
    """Everything the workers share.

    Attributes:
        asks: hears what rows ask a person, and what became of it.
        stop: called with a reason when the run is to end without a person having asked.
    """

    options: BatchOptions
    job: Job
    tools: tuple[str, ...]
    dataset: Dataset
    schedule: Schedule
    ledger: Ledger
    writer: Writer
    books: Books
    floor: Floor
    workers: Workers
    redactor: Redactor
    outage: Outage
    first_tries: FirstTries
    rejects: Rejects
    quality: Quality
    emit: Emitter
    asks: Sink
    stop: Callable[[str], None]
    forecast: Forecast
    recording: Recording | None = None
    stopped_for_all: bool = False
    """The run ends because every row is refused for the same reason."""
    capped: str = ""
    """The option whose cap on what the run uses is reached, for which it ends."""
    untold: int = 0
    """Rows in a row whose usage, which a cap counts, the server did not tell."""
    losses: Counter[str] = field(default_factory=Counter)
    """How often rows were lost with the process that worked them."""

    async def work(self) -> None:
        """One worker: rows until there are no more. Raises what no row is to blame for."""
        while True:
            await self.outage.passable()
            task = await self.schedule.take()
            if task is None:
                return
            await self._one(task)

    async def _one(self, task: Task) -> None:
        row = self.dataset.row(task.place, task.sample)
        prompt = self.redactor.text(_shown(row.prompt))
        self.books.begin(task.ident)
        tape = Tape() if self.recording else None
        TAPE.set(tape)
        at_work = self.floor.begin(row, prompt, self._hear)
        self.writer.touch()
        self.emit(RowStarted, index=row.index, sample=row.sample, prompt=prompt)
        paused = self.outage.seconds
        again = settled = False
        try:
            result = await self._worked(row, at_work)
            at_work.counted = True
            again = result.stop_reason == "timeout" and self.outage.seconds > paused
            if not again:
                settled = True
                if self.recording and tape:
                    self.recording.keep(task.ident, tape)
                await self._settle(task, row, result)
        except RowLost:
            again = True
        finally:
            self.books.end(task.ident)
            self.floor.end(at_work.name)
            if again:
                self.schedule.give_back(task)
            else:
                self.writer.leave_batch(task.batch)
                self.schedule.done(task)
            if not settled:
                self._tell_end(row, "cancelled", "waits to run again" if again else "not finished", None)

    def _hear(self, event: Event) -> None:
        self.outage.hear(event)
        if isinstance(event, ASKS):
            self.asks(event)

    async def _worked(self, row: Row, at_work: RowAtWork) -> RowResult:
        try:
            result = await self.workers.run_row(row, self._job(), at_work)
        except (ConfigError, UsageError, StateError):
            raise
        except RowLost as loss:
            self.books.spend(loss.usage)
            self.losses[row.ident] += 1
            if self.losses[row.ident] < MOST_LOSSES:
                raise
            result = dataclasses.replace(broken(loss, row, self.job), error_kind="worker_lost")
        except Exception as fault:
            _log.exception("row %d failed", row.index)
            result = broken(fault, row, self.job)
        self.outage.ended(result)
        return result

    def _job(self) -> Job:
        """The job, with what is left of the run's caps as the row's own."""
        cap, most = self.options.max_cost_usd, self.options.max_total_tokens
        if cap is None and most is None:
            return self.job
        cost, tokens = self._used()
        limits = dataclasses.replace(
            self.job.spec.limits,
            max_cost_usd=None if cap is None else max(0.0, cap - cost),
            max_total_tokens=None if most is None else max(0, most - tokens),
        )
        return dataclasses.replace(self.job, spec=dataclasses.replace(self.job.spec, limits=limits))

    def _used(self) -> tuple[float, int]:
        """US dollars and tokens of the run until now, those of the rows in flight among them."""
        spent, (cost, tokens) = self.books.spent, self.floor.spending
        return spent.cost_usd + cost, spent.total_tokens + tokens

    async def _settle(self, task: Task, row: Row, result: RowResult) -> None:
        self.books.meet(result)
        self.books.spend(result.usage)
        self.forecast.note(row.prompt, result.usage)
        self._note_untold(result)
        if self._not_its_fault(result):
            self._tell_end(row, "cancelled", result.error, result)
            return
        verdict = judged(result, keep_without_reasoning=self.options.keep_without_reasoning)
        before = self.ledger.failed.get(task.ident)
        if verdict.outcome == "failed" and result.stop_reason in KEPT_STOPS:
            result = dataclasses.replace(result, stop_reason="error")
        record = make_record(row, result, tools=self.tools, batch=task.batch, timestamp=now(), redactor=self.redactor)
        if verdict.outcome == "kept" and (dropped := self.quality.against(record)):
            verdict = Verdict("rejected", *dropped)
        self.floor.seconds[row.index, row.sample] = result.seconds
        await self._write(task, row, record, result, verdict)
        self.books.end(task.ident)
        self.rejects.note(verdict)
        if self.first_tries.note(task.ident, result, before):
            self._take_back()
        self.check_caps()
        self._tell_end(row, verdict.outcome, self.redactor.text(verdict.detail), result)

    def _not_its_fault(self, result: RowResult) -> bool:
        """Whether the row stays to be done: the server was down to the end, or refuses every row."""
        if self.outage.given_up and result.error_kind == EndpointDown.kind:
            return True
        return self.stopped_for_all and self.first_tries.same(result)

    async def _write(self, task: Task, row: Row, record: Record, result: RowResult, verdict: Verdict) -> None:
        if verdict.outcome == "kept":
            if self.books.tokens:
                self.books.tokens.keep(task.ident, result.conversation)
            await self.writer.keep(record, task.batch)
            if not self.schedule.closed:  # else it says why the run ends, which holds
                self.floor.notice = ("", "")  # whatever it was, rows get through
        elif verdict.outcome == "rejected":
            record["reject_reason"] = verdict.reason
            record["reject_detail"] = self.redactor.text(verdict.detail)
            record["invented_tools"] = {name: _times(result, name) for name in invented_tools(result)}
            await self.writer.reject(record)
        else:
            before = self.ledger.failed.get(task.ident)
            if not record["conversations"]:
                record["conversations"] = [{"from": "human", "value": self.redactor.text(row.prompt)}]
            record["reason"] = self.redactor.text(verdict.detail)
            record["error_kind"] = verdict.reason
            record["attempts"] = (before.attempts if before else 0) + 1
            await self.writer.fail(record)

    def _take_back(self) -> None:
        """Every row fails for one reason: the run ends, and none of them is failed for it."""
        for row, before in self.first_tries.streak:
            self.ledger.restore(row, before)
        self.stopped_for_all = True
        reason = self.redactor.text(self.first_tries.told)
        self.stop(f"{len(self.first_tries.streak)} rows in a row failed for one reason: {reason}")

    def _note_untold(self, result: RowResult) -> None:
        usage, options = result.usage, self.options
        if result.turns:
            blind = (options.max_cost_usd is not None and not usage.cost_known and not usage.cost_usd) or (
                options.max_total_tokens is not None and not usage.tokens_known and not usage.total_tokens
            )
            self.untold = self.untold + 1 if blind else 0

    def check_caps(self) -> None:
        """Ends the run when a cap is reached, or cannot be kept, and rows still wait."""
        if not self.schedule.waiting:
            return
        if self.untold >= UNTOLD_USAGES:
            caps = " ".join(f"--{name} none" for name in CAPS if getattr(self.options, name) is not None)
            self.stop(f"the server does not tell what rows use, so the cap cannot be kept; go on without it: {caps}")
            return
        name, reason = self.cap_reached()
        if name:
            self.capped = name
            self.stop(reason)

    def cap_reached(self) -> tuple[str, str]:
        """Whose option's cap is reached, and how far what was in flight went beyond it; "" for none."""
        cap, most = self.options.max_cost_usd, self.options.max_total_tokens
        if cap is None and most is None:  # asked at the end of each row, and what is used is summed over all in flight
            return "", ""
        cost, tokens = self._used()
        if cap is not None and cost >= cap:
            return "max_cost_usd", f"the cost cap is reached: ${cost:.4f} of ${cap:.4f}"
        if most is not None and tokens >= most:
            return "max_total_tokens", f"the token cap is reached: {tokens:,} of {most:,}"
        return "", ""

    def _tell_end(self, row: Row, outcome: str, reason: str, result: RowResult | None) -> None:
        ended = result or RowResult("cancelled")
        self.emit(
            RowFinished,
            index=row.index,
            sample=row.sample,
            outcome=outcome,
            reason=reason,
            seconds=ended.seconds,
            turns=ended.turns,
            tool_calls=ended.tool_calls,
            usage=ended.usage,
            counts=self.books.counts().as_dict(),
        )


def _shown(prompt: str) -> str:
    first = prompt.strip().partition("\n")[0]
    return first if len(first) <= _PROMPT_SHOWN else f"{first[: _PROMPT_SHOWN - 1]}…"


def _times(result: RowResult, name: str) -> int:
    return sum(call.name == name for message in result.conversation for call in message.tool_calls)
