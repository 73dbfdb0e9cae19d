"""One batch run from its options to its summary: one loop, in the thread that calls `run`, its rows as tasks on it.

Says what happens as events to one sink. Knows no terminal and no signal: a front end calls `stop`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hermes_engine.batch.assembled import assembled
from hermes_engine.batch.books import Books, State
from hermes_engine.batch.crew import Crew
from hermes_engine.batch.dataset import Dataset
from hermes_engine.batch.first_words import told_first
from hermes_engine.batch.floor import Floor, RowName
from hermes_engine.batch.folder import held
from hermes_engine.batch.forecast import forecast_of
from hermes_engine.batch.health import FirstTries, Outage, Rejects
from hermes_engine.batch.options import BatchOptions
from hermes_engine.batch.pacing import Pace
from hermes_engine.batch.plan import Plan, make_plan
from hermes_engine.batch.quality_preview import quality_of_run
from hermes_engine.batch.recording import Recording
from hermes_engine.batch.rows import OwnLoop, RowAgents, Workers
from hermes_engine.batch.schedule import Schedule
from hermes_engine.batch.setup import Setup, set_up
from hermes_engine.batch.statistics import exit_code
from hermes_engine.batch.steering import Steering
from hermes_engine.batch.tokens import TokenFile
from hermes_engine.batch.writer import Writer
from hermes_engine.errors import HermesError, UsageError
from hermes_engine.events import BatchFinished, BatchStarted, Emitter, Notice, Sink
from hermes_engine.profiles import Resolved
from hermes_engine.redaction import Redactor
from hermes_engine.requests import Broker

T = TypeVar("T")

MakeAgents = Callable[[Setup, Outage], RowAgents]

ASKING = ("ask", "edits")
"""Modes in which rows ask, where a person can answer."""

GRACE = 2.5
"""Seconds that rows in flight have to end by themselves after an interrupt."""

CLEARING = 2.0
"""Seconds that cancelled rows have to end what they started."""

ORDER_SECONDS = 5.0
"""How long an order to a run may take."""

_TICK = 1.0


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """How an invocation ended.

    Attributes:
        state: done | interrupted (a person asked) | stopped (a cap, the server) | failed (a fault).
        reason: one line when not done.
        counts: the run's rows by state, see `Counts.as_dict`.
        seconds: of this invocation.
        merged: whether the merged files hold all rows; else the next resume writes them.
        capped: the option whose cap ended it: a resume under the same cap ends at once. "" for none.
    """

    name: str
    folder: Path
    state: State
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    merged: bool = True
    capped: str = ""

    @property
    def exit_code(self) -> int:
        """Of the command: 0 all well, 1 something failed or nothing was kept, 130 interrupted."""
        return exit_code(self.state, self.counts)


class BatchRun:
    """A run.

    Args:
        options: of this invocation.
        resolved: settings in effect; options go before them.
        sink: hears BatchStarted, RowStarted, RowFinished, Notice and BatchFinished, on the run's thread.
        make_agents: builds the rows' agents; the assembly's by default.
        only: rows to be worked, by name; None for all that are to be done.
        broker: has a person answer rows whose mode asks; without, what would ask is denied.

    Attributes:
        floor: what goes on, to be looked at from any thread.
    """

    def __init__(
        self,
        options: BatchOptions,
        resolved: Resolved,
        sink: Sink,
        *,
        make_agents: MakeAgents | None = None,
        only: Collection[RowName] | None = None,
        broker: Broker | None = None,
    ) -> None:
        self._broker = broker
        self.options, self.resolved = options, resolved
        self._sink = sink
        self._make_agents = make_agents
        self._only = only
        self.floor = Floor()
        self._lock = threading.RLock()  # `stop` may interrupt its own thread, from a signal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: State | None = None
        self._reason = ""
        self._at_once = self._time_is_up = False
        self._stopping = asyncio.Event()
        self._schedule: Schedule | None = None
        self._steering: Steering | None = None

    def run(self) -> BatchSummary:
        """Works the run to its end. Blocking; may be called once.

        Raises:
            UsageError: wrong options; the run is being worked elsewhere.
            ConfigError: no model can be asked.
            StateError: the run's files cannot be read.
            Interrupted: a person stopped it before its first row.
        """
        with asyncio.Runner() as runner:
            return runner.run(self._main())

    def stop(self, now: bool = False) -> None:
        """Ends the run early; from any thread, at any time.

        Args:
            now: rows in flight are not waited for, and the merged files are left to the next resume.
        """
        with self._lock:
            self._at_once = self._at_once or now
            self._asked = "interrupted"
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._take_no_more)

    async def order(self, what: Callable[[Steering], T], *, looks: bool = False) -> T:
        """Has an order carried out on the run's loop; awaited on another one. `looks`: it changes nothing.

        Raises:
            UsageError: no rows are worked now; or the run is ending, and the order would change something.
        """
        with self._lock:
            loop, steering = self._loop, self._steering
            if loop is None or steering is None or (self._asked and not looks):
                raise UsageError(f"the run {self.options.run_name} does not work rows now", hint="wait a moment")

            async def carry_out() -> T:
                return what(steering)

            answer = asyncio.run_coroutine_threadsafe(carry_out(), loop)
        return await asyncio.wait_for(asyncio.wrap_future(answer), ORDER_SECONDS)

    def _stop_itself(self, reason: str) -> None:
        """The run ends for a reason of its own; on the loop."""
        if self._asked is None:
            self._asked, self._reason = "stopped", reason
            self._tell("error", reason)
        self._take_no_more()

    def _take_no_more(self) -> None:
        self._stopping.set()
        if self._schedule is not None:
            self._schedule.close()

    def _tell(self, level: str, text: str) -> None:
        self.floor.notice = level, text
        self._emit(Notice, level=level, text=text)

    async def _main(self) -> BatchSummary:
        with self._lock:
            self._loop = asyncio.get_running_loop()
            if self._asked:
                self._stopping.set()
        self.floor.begun = True
        name = self.options.run_name
        self._emit = Emitter(self._sink, session=name, run=name, agent=name)
        try:
            setup = set_up(self.options, self.resolved)
            dataset = setup.dataset()
            try:
                with held(setup.folder, setup.options.work_dir, keep_work=setup.options.keep_work) as work:
                    return await self._worked(setup, dataset, work)
            finally:
                dataset.close()
        finally:
            with self._lock:
                self._loop = self._steering = None

    async def _worked(self, setup: Setup, dataset: Dataset, work: Path) -> BatchSummary:
        redactor = Redactor(setup.resolved.secrets)
        for note in setup.notes:
            self._tell("warning", redactor.text(note))
        plan = make_plan(
            dataset, setup.folder, setup.options, only=self._only, stopped=lambda: self._asked == "interrupted"
        )
        self.floor.workers = setup.options.num_workers
        books = Books(setup, plan, redactor, self.floor)
        for level, text in told_first(plan, setup, work, books.lost):
            self._tell(level, text)
        plan.ledger.shape(setup.tools)
        outage = Outage(setup.options.endpoint_wait, self._tell, self._stop_itself)
        workers = self._workers(setup, outage, work)
        outage.probe = lambda: workers.probe(setup.spec)
        try:
            if plan.tasks:
                await self._opened(workers)
            books.write_settings()
            crew = self._crew(setup, plan, books, dataset, work, outage, workers)
            return await self._begun(crew, setup, plan)
        finally:
            await workers.close()

    async def _begun(self, crew: Crew, setup: Setup, plan: Plan) -> BatchSummary:
        books = crew.books
        self.floor.notice = ("", "")  # what was said of the beginning does not last
        self.floor.counts = counts = books.counts().as_dict()
        name, folder, cap = setup.options.run_name, str(setup.folder.root), setup.options.max_cost_usd
        done, workers = plan.total - len(plan.tasks), min(setup.options.num_workers, len(plan.tasks))
        self._emit(
            BatchStarted, name=name, folder=folder, total=plan.total, done=done, workers=workers, counts=counts,
            cost_usd=books.spent.cost_usd, max_cost_usd=cap,
        )  # fmt: skip
        fault: HermesError | None = None
        ticker = asyncio.create_task(self._tick(crew, setup))
        try:
            await crew.writer.tick()
            await self._all_rows(crew, Steering(crew, plan), ticker)
        except HermesError as error:
            fault = error
        finally:
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)
            await crew.workers.close()
            for file in (crew.recording, crew.books.tokens):
                if file is not None:
                    file.close()
        return self._ended(crew, setup, plan, fault)

    def _crew(
        self, setup: Setup, plan: Plan, books: Books, dataset: Dataset, work: Path, outage: Outage, workers: Workers
    ) -> Crew:
        options, redactor = setup.options, Redactor(setup.resolved.secrets)
        books.tokens = TokenFile(setup.folder, plan.ledger.kept, self._tell) if options.record_tokens else None
        self._schedule = Schedule(plan.tasks, shared_cwd=options.shared_cwd, places=options.num_workers)
        writer = Writer(
            setup.folder,
            plan.ledger,
            fsync=options.fsync,
            rows_of_batch=plan.rows_of_batch,
            checkpoint=books.checkpoint,
            statistics=books.statistics,
        )
        return Crew(
            options=options,
            job=setup.job(work),
            tools=setup.tools,
            dataset=dataset,
            schedule=self._schedule,
            ledger=plan.ledger,
            writer=writer,
            books=books,
            floor=self.floor,
            workers=workers,
            redactor=redactor,
            outage=outage,
            first_tries=FirstTries(),
            rejects=Rejects(self._tell),
            quality=quality_of_run(setup.folder, options.filter, plan.ledger.kept),
            emit=self._emit,
            asks=self._sink,
            stop=self._stop_itself,
            forecast=forecast_of(plan, dataset, self._tell),
            recording=Recording(setup.folder, redactor) if options.record else None,
        )

    def _workers(self, setup: Setup, outage: Outage, work: Path) -> Workers:
        options = setup.options
        if self._make_agents is not None:
            return OwnLoop(self._make_agents(setup, outage))
        pace = Pace(options.requests_per_minute, options.tokens_per_minute, outage.tell)
        if options.engine == "ray":
            from hermes_engine.batch.fleet import Fleet  # as few runs need it

            return Fleet(setup, setup.job(work), outage, pace, self.floor)
        asked = self._broker if setup.spec.mode in ASKING else None
        return OwnLoop(assembled(setup, outage, pace, self.floor, broker=asked, asks=self._sink))

    async def _opened(self, workers: Workers) -> None:
        """Waits until rows can be worked, or the run is to end. Raises what ends it as a fault."""
        opening = asyncio.create_task(workers.open())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if opening.done():
            opening.result()
        opening.cancel()
        await asyncio.gather(opening, stopping, return_exceptions=True)

    async def _all_rows(self, crew: Crew, steering: Steering, ticker: asyncio.Task[None]) -> None:
        """Runs the workers until no row is left or the run is to end. Raises what ends it as a fault."""
        crew.check_caps()
        if self._stopping.is_set():
            self._take_no_more()
        steering.hire()
        if not steering.tasks:
            return
        with self._lock:
            self._steering = steering
        stopping = asyncio.create_task(self._stopping.wait())
        all_ended = asyncio.create_task(steering.over.wait())
        try:
            await asyncio.wait({all_ended, stopping, ticker}, return_when=asyncio.FIRST_COMPLETED)
            if not all_ended.done() and stopping.done() and not self._at_once:
                await self._grace(all_ended, ticker)
        finally:
            with self._lock:
                self._steering = None
            stopping.cancel()
            all_ended.cancel()
            for worker in steering.tasks:
                worker.cancel()
            await asyncio.wait(steering.tasks, timeout=0.5 if self._at_once else CLEARING)
            await asyncio.gather(stopping, all_ended, return_exceptions=True)
        _raise_fault([*steering.tasks, ticker])

    async def _grace(self, all_ended: asyncio.Task[bool], ticker: asyncio.Task[None]) -> None:
        """Lets rows in flight end by themselves; a second wish to stop ends that.

        They get a moment when a person asked or the time is up; all their time else, for they are paid for.
        """
        loop = asyncio.get_running_loop()
        end: float | None = None
        while not self._at_once and (end is None or loop.time() < end):
            if end is None and (self._asked == "interrupted" or self._time_is_up):
                end = loop.time() + GRACE
            done, _ = await asyncio.wait({all_ended, ticker}, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return

    async def _tick(self, crew: Crew, setup: Setup) -> None:
        """Once a second: the index files, whether another process asked the run to stop, whether its time is up."""
        writer, told, most = crew.writer, self.floor.notice, setup.options.max_seconds
        while True:
            await asyncio.sleep(_TICK)
            if self.floor.notice is not told:
                told = self.floor.notice
                writer.touch()
            await writer.tick()
            if setup.folder.stop_asked():
                self.stop()
            if most is not None and crew.books.seconds >= most and not self._time_is_up:
                self._time_is_up = True
                self._stop_itself(f"the time cap is reached: {most:g} s")

    def _ended(self, crew: Crew, setup: Setup, plan: Plan, fault: HermesError | None) -> BatchSummary:
        books, writer = crew.books, crew.writer
        books.state, books.reason = ("failed", fault.line) if fault else (self._asked or "done", self._reason)
        if books.state == "stopped" and crew.capped:
            books.reason = crew.cap_reached()[1]  # with what rows in flight used meanwhile
        merged = False
        try:
            if not self._at_once or fault is not None:
                books.write_card()
                writer.finish(plan.places, lambda place: crew.redactor.text(crew.dataset.row(place).extra))
                merged = True
        except HermesError as error:
            books.state, books.reason = "failed", books.reason or error.line
        try:
            writer.write_index(sync=not self._at_once)
        except HermesError as error:
            books.state, books.reason = "failed", books.reason or error.line
        counts = books.counts().as_dict()
        name, state, reason, seconds = setup.options.run_name, books.state, books.reason, books.seconds
        self._emit(BatchFinished, name=name, state=state, reason=reason, counts=counts, seconds=seconds)
        return BatchSummary(name, setup.folder.root, state, reason, counts, seconds, merged, crew.capped)


def _raise_fault(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and (fault := task.exception()) is not None:
            raise fault
