"""Another agent than the chat's, watched in the plain shell: what it did so far, then its lines as they come, while
those of the chat wait. Knows no terminal.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError
from hermes_engine.events import AgentFinished, Event
from hermes_tui.cleaning import one_line
from hermes_tui.outcomes import state_words
from hermes_tui.printing.lines import EventLines, Line
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.requests import Answer
    from hermes_engine.store.agents import AgentRecord
    from hermes_tui.repl.shell import Shell

FOLLOW_SECONDS = 0.7
"""Between two looks at what an agent of another program does."""


class Watched:
    """One watched agent. `begin` is called once, with what is recorded of it; `feed` with each event from before that.

    Attributes:
        agent, session, name: of the watched one.
        held: the chat's own lines meanwhile.
        over: whether it has ended.
        away: whether it works in another program.
    """

    def __init__(self, agent: str, session: str, name: str) -> None:
        self.agent, self.session, self.name = agent, session, one_line(name, 40)
        self.held: list[Line] = []
        self.over = self.away = False
        self._lines = EventLines(session, starts=True, children=True)
        self._early: list[Event] | None = []

    def begin(self, past: Iterable[Event], prompt: str) -> list[Line]:
        """Its task and its lines so far."""
        lines = [Line(f"── {self.name}: {one_line(prompt, 200)}", "bold")]
        known: dict[str, int] = {}
        for event in past:
            known[event.run] = event.seq
            lines += self._lines.feed(event)
        early, self._early = self._early or [], None
        for event in early:
            if not event.run or event.seq > known.get(event.run, 0):
                lines += self._live(event)
        return lines

    def feed(self, event: Event) -> list[Line]:
        """The lines an event adds."""
        if self._early is not None:
            self._early.append(event)
            return []
        return self._live(event)

    def _live(self, event: Event) -> list[Line]:
        if isinstance(event, AgentFinished) and event.agent == self.agent:
            self.over = True
            return [Line(f"── {self.name}: {state_words(event.state)}", "bold")]
        return self._lines.feed(event) if event.session == self.session else []


class Watch:
    """Who is watched in a shell, if anybody. All but `start` is called on the front's thread."""

    def __init__(self, shell: Shell, *, attended: bool) -> None:
        self._shell, self._attended = shell, attended
        self._watched: Watched | None = None

    @property
    def agent(self) -> str:
        """Who is watched, "" for nobody."""
        return self._watched.agent if self._watched else ""

    @property
    def name(self) -> str:
        """Of who is watched."""
        return self._watched.name if self._watched else ""

    @property
    def prompt(self) -> str:
        """The words before the cursor."""
        return _("{name} · Enter goes back ❯ ").format(name=self._watched.name) if self._watched else "❯ "

    def start(self, agent: str) -> None:
        """Prints what an agent did so far, and goes on with it while it is at work; from a pipe only the former.

        Blocks for the disk. Raises UsageError.
        """
        engine, front = self._shell.engine, self._shell.front
        record = engine.tasks.record(agent)
        watched = Watched(record.id, record.session, record.name)
        watched.away = record.id in {one.id for one in engine.tasks.elsewhere()}
        if self._attended and (watched.away or engine.supervisor.at_work(record.id)):
            front.post(lambda: self._look_at(watched))
        past = list(engine.tasks.events(record.session))

        def begin() -> None:
            lines = watched.begin(past, record.prompt)
            front.put(lines if self._attended else [dataclasses.replace(line, answer=True) for line in lines])
            self._gone()

        front.post(begin)
        if self._attended and watched.away:
            known = {event.run: event.seq for event in past}
            threading.Thread(target=self._follow, args=(watched, known), name="hermes-watch", daemon=True).start()

    def _follow(self, watched: Watched, known: dict[str, int]) -> None:
        """Reads on what an agent of another program does, up to its end or until nobody watches. For a thread."""
        tasks = self._shell.engine.tasks

        def heard(record: AgentRecord, events: Sequence[Event]) -> None:
            if self._watched is watched:
                for event in events:
                    self._shell.front.put(watched.feed(event))
                self._shell.asking.only(watched.agent, record.asks)
                self._gone()

        while True:
            try:
                record, fresh = tasks.record(watched.agent), list(tasks.events(watched.session, known))
            except (HermesError, RuntimeError):  # the latter from an engine that is being closed
                return
            known.update({event.run: event.seq for event in fresh})
            if not record.live:
                fresh.append(AgentFinished(agent=record.id, state=record.state))
            self._shell.front.post(partial(heard, record, fresh))
            if not record.live or self._shell.left.wait(FOLLOW_SECONDS) or self._watched is not watched:
                return

    def answer(self, request: str, answer: Answer) -> None:
        """Answers what the watched one asks in another program: by an order."""
        payload = {"request": request, "choice": answer.choice, "note": answer.note}
        order = partial(self._shell.engine.tasks.order, "answer", self.agent, payload)
        self._shell.host.in_background(order)

    def _look_at(self, watched: Watched) -> None:
        self.end()
        self._watched = watched
        self._shell.front.changed()

    def feed(self, event: Event, own: Sequence[Line]) -> None:
        """Prints what an event means here; `own` is what it means for the chat."""
        if self._watched is None:
            self._shell.front.put(own)
            return
        self._watched.held += own
        self._shell.front.put(self._watched.feed(event))
        self._gone()

    def _gone(self) -> None:
        if self._watched is not None and self._watched.over:
            self.end()

    def end(self) -> bool:
        """Goes back to the chat: what it said meanwhile is printed. False when nobody is watched."""
        watched, self._watched = self._watched, None
        if watched is None:
            return False
        if watched.away:
            self._shell.asking.only(watched.agent, None)
        self._shell.front.put(watched.held)
        self._shell.front.changed()
        return True

    def tell(self, text: str) -> bool:
        """Hands a text to the watched agent; False when it takes none."""
        try:
            self._shell.engine.tasks.tell(self.agent, text)
        except HermesError as error:
            self._shell.say("error", error.line)
            return False
        self._shell.front.put([Line(f"· {_('at the next step')}: {one_line(text, 80)}", "dim")])
        return True
