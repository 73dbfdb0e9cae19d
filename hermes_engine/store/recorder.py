"""A sink that records events and agents, off the threads that work. Batch rows are not recorded here.

Taking an event is an append to a queue; a thread of its own writes what has gathered in one transaction, joins
neighbouring deltas and redacts them as a stream. A fault of the store never reaches a run: it is logged and told
once, what waits is kept (bounded) and tried again.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from hermes_engine.errors import StateError
from hermes_engine.events import (
    AgentChanged,
    AgentFinished,
    AgentStarted,
    ApprovalAsked,
    BatchStarted,
    Event,
    Notice,
    QuestionAsked,
    RequestSettled,
    RowFinished,
    RowStarted,
    TextDelta,
    ThoughtDelta,
    ToolProgress,
    TurnFinished,
    TurnStarted,
    to_json,
)
from hermes_engine.redaction import Redactor
from hermes_engine.store.agents import AgentRecord, change_agent, finish_agent, insert_agent, set_request
from hermes_engine.store.database import Database, clean
from hermes_engine.store.instances import HEARTBEAT_SECONDS, Instances
from hermes_engine.store.recordings import insert_chunk
from hermes_engine.store.streams import RunStream

log = logging.getLogger(__name__)

_GATHER_SECONDS = 0.1
_RETRY_SECONDS = 2.0
_MOST_WAITING = 20_000
_LOSSY = (TextDelta, ThoughtDelta, ToolProgress)


class Recorder:
    """Records what it hears; see the module's docstring. `__call__` is the sink, for any thread.

    Args:
        database: opened and migrated.
        instance: who records; its heartbeat is kept while the recorder lives. "" = none.
        redactor: takes secrets out of everything written.
        on_notice: hears once, on the recorder's thread, that the store fails; and once that it works again.
    """

    def __init__(
        self,
        database: Database,
        *,
        instance: str = "",
        redactor: Redactor | None = None,
        on_notice: Callable[[Notice], None] | None = None,
    ) -> None:
        self._database = database
        self._instance = instance
        self._redactor = redactor or Redactor()
        self._on_notice = on_notice
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._taken = self._settled = self._rounds = 0
        self._last_beat = time.monotonic()
        self._urgent = self._stopping = self._failing = False
        self._rows: set[str] = set()
        self._streams: dict[str, RunStream] = {}
        self._thread = threading.Thread(target=self._main, name="hermes-recorder", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Takes an event; returns at once."""
        if isinstance(event, BatchStarted):
            self._rows.add(event.name)
        if isinstance(event, RowStarted | RowFinished) or (event.session and event.session in self._rows):
            return
        with self._changed:
            if self._stopping or (len(self._waiting) >= _MOST_WAITING and isinstance(event, _LOSSY)):
                return
            self._waiting.append(event)
            self._taken += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until all that was taken before is on disk. False when the store fails or time is up."""
        with self._changed:
            goal, rounds = self._taken, self._rounds
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._settled >= goal or (self._failing and self._rounds > rounds), timeout)
            return self._settled >= goal

    def close(self, timeout: float = 5.0) -> bool:
        """Writes what waits and ends the thread; events after this are dropped. False as with `flush`."""
        with self._changed:
            self._stopping = self._urgent = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return self._settled >= self._taken and not self._thread.is_alive()

    # -- the recorder's own thread --------------------------------------------------------------------------------

    def _main(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping, HEARTBEAT_SECONDS)
                if self._waiting:
                    wait = _RETRY_SECONDS if self._failing else _GATHER_SECONDS
                    self._changed.wait_for(lambda: self._urgent or self._stopping, wait)
                self._urgent = False
                last = self._stopping
                batch = list(self._waiting)
            if batch:
                self._write(batch)
            if last:
                return
            self._beat()

    def _write(self, batch: list[Event]) -> None:
        """Writes a batch. On a fault of the store it stays at the head of the queue."""
        streams = {event.run: self._streams.get(event.run) for event in batch if event.run}
        done: dict[str, RunStream | None] = {}
        fault: StateError | None = None
        try:
            with self._database.write() as connection:
                after = self._record(connection, batch, streams)
            done = after
        except StateError as error:
            fault = error
        except Exception:
            log.exception("events could not be recorded and are left out")
        if fault is not None:
            self._report(fault)
        with self._changed:
            recovered = self._failing and fault is None
            self._failing = fault is not None
            self._rounds += 1
            if fault is None:
                for _ in batch:
                    self._waiting.popleft()
                self._settled += len(batch)
            self._changed.notify_all()
        self._streams = {run: stream for run, stream in (self._streams | done).items() if stream is not None}
        if recovered:
            self._tell("info", "state is being recorded again")

    def _report(self, error: StateError) -> None:
        if self._failing:
            return
        log.error("state cannot be recorded: %s", error)
        self._tell("error", f"state cannot be recorded: {error}")

    def _tell(self, level: str, text: str) -> None:
        if self._on_notice is not None:
            try:
                self._on_notice(Notice(level=level, text=text, time=time.time()))
            except Exception:
                log.exception("a notice was refused")

    def _beat(self) -> None:
        now = time.monotonic()
        if self._instance and now - self._last_beat >= HEARTBEAT_SECONDS:
            self._last_beat = now
            try:
                Instances(self._database).beat(self._instance)
            except (StateError, sqlite3.Error) as error:
                log.warning("no heartbeat: %s", error)

    def _record(
        self, connection: sqlite3.Connection, batch: Iterable[Event], streams: Mapping[str, RunStream | None]
    ) -> dict[str, RunStream | None]:
        """Writes a batch within a transaction; returns how each run's stream goes on, None where it ended."""
        by_run: dict[str, list[Event]] = {}
        for event in batch:
            self._record_state(connection, event)
            if event.run:
                by_run.setdefault(event.run, []).append(event)
        after: dict[str, RunStream | None] = {}
        for run, events in by_run.items():
            before = streams[run]
            stream = before.fork() if before else RunStream(self._redactor)
            lines = stream.lines(events)
            if lines:
                insert_chunk(connection, events[0].session, run, (events[0].seq, events[-1].seq), lines)
            after[run] = None if isinstance(events[-1], TurnFinished) else stream
        return after

    def _record_state(self, connection: sqlite3.Connection, event: Event) -> None:
        text = self._redactor.text
        now = event.time or time.time()
        match event:
            case AgentStarted():
                record = AgentRecord(
                    event.agent,
                    event.parent,
                    event.session,
                    self._instance,
                    text(event.name),
                    text(event.title),
                    event.kind,
                    event.state,
                    prompt=text(event.prompt),
                    model=event.model,
                    profile=event.profile,
                    created=now,
                    owner=event.owner,
                    bound=event.bound,
                    result_seen=event.bound,
                    follows=event.follows,
                )
                insert_agent(connection, record)
            case AgentChanged():
                change_agent(connection, event.agent, state=event.state, activity=text(event.activity), now=now)
            case AgentFinished():
                finish_agent(
                    connection,
                    event.agent,
                    state=event.state,
                    answer=text(event.answer),
                    error=text(event.error),
                    usage=event.usage,
                    note=text(event.note),
                    files=[text(name) for name in event.files_changed],
                    now=now,
                )
            case ApprovalAsked() | QuestionAsked():
                asked = json.dumps(self._redactor.value(to_json(event)), ensure_ascii=False)
                set_request(connection, event.agent, asked)
            case RequestSettled():
                set_request(connection, event.agent, "")
            case TurnStarted():
                connection.execute(
                    "INSERT OR IGNORE INTO runs (id, session, agent, parent, instance, model, prompt, started)"
                    " VALUES (?,?,?,?,?,?,?,?)",
                    (
                        event.run,
                        event.session,
                        event.agent,
                        event.parent_run,
                        self._instance,
                        clean(event.model),
                        clean(text(event.prompt)),
                        now,
                    ),
                )
                connection.execute(
                    "UPDATE agents SET prompt = ? WHERE id = ? AND prompt = ''",
                    (clean(text(event.prompt)), event.agent),
                )
            case TurnFinished():
                connection.execute(
                    "UPDATE runs SET status = ?, error = ?, ended = ? WHERE id = ? AND ended IS NULL",
                    (event.status, clean(text(event.error)), now, event.run),
                )
