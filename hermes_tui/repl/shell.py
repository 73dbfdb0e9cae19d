"""The plain shell's state and rules, however lines are read: what a line means, what an event prints.

Everything here runs on the front's one thread; `Front.post` brings work of other threads there. Knows no terminal.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes_engine.errors import HermesError
from hermes_engine.events import (
    AgentFinished,
    BatchFinished,
    Event,
    TurnFinished,
)
from hermes_tui.cleaning import one_line
from hermes_tui.commands import Output, dispatch
from hermes_tui.commands.host import HostKind
from hermes_tui.commands.listing import money, thousands
from hermes_tui.outcomes import Outcome, kept, told
from hermes_tui.printing.lines import EventLines, Line, outcome_lines
from hermes_tui.printing.outputs import output_lines
from hermes_tui.repl.asking import Asking
from hermes_tui.repl.going import Going
from hermes_tui.repl.host import ShellHost
from hermes_tui.repl.watching import Watch
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import Engine, SessionView

AGAIN_SECONDS = 3.0
"""Within this a second Ctrl+C, or a second wish to leave while work runs, is meant."""

LOOK_SECONDS = 2.0
"""Between two looks for results of other programs."""

CYCLE = ("ask", "edits", "plan", "auto")


@dataclass(frozen=True, slots=True)
class Opening:
    """With what the shell opens."""

    resolved: Resolved
    cwd: Path
    resume: str | None = None
    continue_last: bool = False
    mode: str | None = None


class Front(Protocol):
    """How lines come in and go out. All but `post` is called on the front's own thread."""

    kind: HostKind

    def post(self, work: Callable[[], None]) -> None:
        """Runs work on the front's thread; may be called from any thread."""

    def put(self, lines: Sequence[Line]) -> None:
        """Prints lines above the prompt."""

    def changed(self) -> None:
        """What the prompt shows may have changed."""

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt."""

    def clear(self) -> None:
        """Empties the view."""

    def leave(self) -> None:
        """Ends the shell."""


def safely(work: Callable[[], None], front: Front) -> None:
    """The shell's border: a fault nobody foresaw is a line and an entry in the log, and the shell goes on."""
    try:
        work()
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as fault:
        from hermes_tui.printing.faults import log_fault

        path = log_fault(fault)
        where = f" ({path})" if path else ""
        front.put([Line(f"✗ {one_line(f'{type(fault).__name__}: {fault}', 300)}{where}", "red")])


class Shell:
    """One plain shell on one engine."""

    def __init__(self, opening: Opening, front: Front, *, attended: bool) -> None:
        from hermes_engine.session import Engine

        self.front = front
        self.resolved = opening.resolved
        self.cwd = opening.cwd
        self.failed = 0
        self._shown: set[str] = set()
        self.left = threading.Event()
        self.asking = Asking(self)
        self.watch = Watch(self, attended=attended)
        self.going = Going(self, attended=attended)
        self._asked_to_leave = -math.inf
        self.engine: Engine = Engine(self.resolved, self._sink, attended=attended)
        self.engine.start()
        self.host = ShellHost(self)
        try:
            view = self.engine.open_session(
                self.cwd, resume=opening.resume, continue_last=opening.continue_last, mode=opening.mode
            )
            self._brought = self._results(view.id) if attended else []
        except BaseException:
            self.engine.close()
            raise
        self.session = view.id
        self.lines = self._event_lines()

    def _event_lines(self) -> EventLines:
        return EventLines(self.session, starts=self.front.kind == "linear")

    def _sink(self, event: Event) -> None:
        self.front.post(lambda: self.hear(event))

    # -- what is said ---------------------------------------------------------------------------------------------

    def greet(self) -> None:
        """The first lines: what this is, and what was resumed."""
        view = self.engine.view(self.session)
        self.say("text", _("Hermes, plain shell. /help lists the commands, /quit leaves."))
        self.show_resumed(view)
        self.show_results(self._brought)
        threading.Thread(target=self.look_for_results, name="hermes-results", daemon=True).start()
        if why := self._unanswerable():
            self.say("error", why)

    def answerable(self) -> bool:
        """Whether there is a server, and a key where it wants one, for the chat's model."""
        return not self._unanswerable()

    def _unanswerable(self) -> str:
        try:
            self.resolved.endpoint_for(self.engine.view(self.session).model)
        except HermesError as error:
            return error.line
        return ""

    def show_resumed(self, view: SessionView) -> None:
        """Says with what a resumed chat goes on; nothing for an empty one."""
        if not view.messages:
            return
        count = len(view.messages)
        line = ngettext("Going on with {title}: {n} message.", "Going on with {title}: {n} messages.", count)
        self.say("text", line.format(title=one_line(view.title, 60) or view.id, n=count))
        last = next((message for message in reversed(view.messages) if message.role == "assistant"), None)
        if last is not None and last.content:
            self.say("text", last.content)
        if not view.busy and (last is not view.messages[-1] or last.partial):
            self.say("text", _("Its last turn was cut off. /retry sends the message again."))

    def _results(self, session: str) -> list[Outcome]:
        """What tasks of a chat have brought that nobody has seen yet. Blocks."""
        try:
            return [kept(record) for record in self.engine.tasks.results(session)]
        except (HermesError, RuntimeError):  # the latter from an engine that is being closed
            return []

    def look_for_results(self) -> None:
        """Prints, until the shell is left, what ends in other programs: tasks can be left working. For a thread."""

        def show(session: str, brought: Sequence[Outcome]) -> None:
            if session == self.session:
                self.show_results([outcome for outcome in brought if outcome.id not in self._shown])

        while not self.left.wait(LOOK_SECONDS):
            session = self.session
            if brought := self._results(session):
                self.front.post(partial(show, session, brought))

    def show_results(self, outcomes: Sequence[Outcome]) -> None:
        """Prints what tasks brought meanwhile."""
        for outcome in outcomes:
            self._shown.add(outcome.id)
            self.front.put(outcome_lines(outcome))
        self.engine.tasks.seen([outcome.id for outcome in outcomes])

    def say(self, kind: str, text: str) -> None:
        """Shows a line of the shell itself."""
        self.show(Output("error" if kind == "error" else "text", text))

    def show(self, output: Output) -> None:
        """Shows what a command says; from a pipe it goes where answers go, as it was asked for."""
        lines = output_lines(output)
        if output.kind == "error":
            self.failed += 1
        else:
            lines = [dataclasses.replace(line, answer=True) for line in lines]
        self.front.put(lines)

    def hear(self, event: Event) -> None:
        """Takes an event in: prints its lines, keeps what waits for an answer."""
        self.watch.feed(event, self.lines.feed(event))
        self.asking.hear(event)
        if isinstance(event, TurnFinished) and event.session == self.session and not event.parent_run:
            self.failed += event.status != "ok"
            if event.status != "ok" and (count := len(self.engine.queued(self.session))):
                words = ngettext("{n} queued stays", "{n} queued stay", count).format(n=count)
                self.front.put([Line(f"· {words}: /queue send, /queue clear", "dim")])
        elif isinstance(event, BatchFinished):
            counts = event.counts
            self.failed += event.state != "done" or bool(counts.get("failed") or counts.get("invalid"))
        elif isinstance(event, AgentFinished) and told(event) and event.owner == self.session:
            self.failed += event.state != "done"
            self._shown.add(event.agent)
            self.engine.tasks.seen([event.agent])
        self.going.look()
        self.front.changed()

    # -- what is typed --------------------------------------------------------------------------------------------

    def take(self, text: str) -> bool:
        """Does what a typed line means. False when it belongs back in the prompt; the reason is shown."""
        if self.going.answered(text) or (not text.strip() and self.watch.end()):
            return True
        if self.asking.waiting and not text.startswith("/"):
            if not text.strip():
                return True
            if (answered := self.asking.answer(text)) is not None:
                return answered
        if self.watch.agent and not text.startswith("/"):
            return self.watch.tell(text)
        if not text.strip():
            self.engine.send_next(self.session)
            return True
        outcome = dispatch(text, self.host)
        if outcome == "text":
            try:
                how = self.engine.send(self.session, text)
            except HermesError as error:
                self.say("error", error.line)
                return False
            if how == "queued":
                self.front.put([Line(f"· {_('queued')}: {one_line(text, 80)}", "dim")])
        return outcome != "refused"

    def steer(self, text: str) -> None:
        """Hands text to the running turn, or sends it."""
        if text.strip():
            self.engine.steer(self.session, text)
            self.front.put([Line(f"· {_('at the next step')}: {one_line(text, 80)}", "dim")])

    def take_back(self) -> str:
        """The last queued message, taken out of the queue; "" when none waits."""
        items = list(self.engine.queued(self.session))
        if not items:
            return ""
        last = items.pop()
        self.engine.set_queue(self.session, items)
        return last

    def next_mode(self) -> None:
        """Goes on to the next approval mode."""
        mode = self.engine.view(self.session).mode
        position = CYCLE.index(mode) if mode in CYCLE else -1
        self.engine.set_mode(self.session, CYCLE[(position + 1) % len(CYCLE)])
        self.front.changed()

    # -- stopping and leaving -------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a turn of this chat runs."""
        return self.engine.busy(self.session)

    @property
    def beside(self) -> bool:
        """Whether anything runs beside this chat."""
        return any(row.live and row.kind != "chat" for row in self.engine.agents())

    def stop(self) -> bool:
        """Stops the running turn; False when none runs."""
        return self.engine.interrupt(self.session)

    def interrupt(self) -> None:
        """Ctrl+C on an empty prompt: goes back, stops the turn, else asks once more, else leaves."""
        if self.watch.end() or self.stop():
            return
        if time.monotonic() - self._asked_to_leave < AGAIN_SECONDS:
            self.front.leave()
            return
        self._asked_to_leave = time.monotonic()
        self.say("text", _("Ctrl+C again to leave.") + self.going.stops())

    def ask_quit(self) -> None:
        """Leaves; asks first what shall become of what runs."""
        if self.going.ask():
            self.front.leave()

    def close(self, *, hung_up: bool = False) -> None:
        """Ends the engine; blocks for up to a few seconds. `hung_up`: the terminal has gone."""
        self.left.set()
        self.going.close(hung_up=hung_up)

    # -- changing the chat ----------------------------------------------------------------------------------------

    def open(self, resume: str | None) -> None:
        """Opens another chat, off the front's thread, and goes on there."""

        def work() -> None:
            try:
                mode = self.engine.view(self.session).mode
                view = self.engine.open_session(self.cwd, resume=resume, mode=mode)
            except HermesError as error:
                line = error.line
                self.front.post(lambda: self.say("error", line))
                return
            brought = self._results(view.id)
            self.front.post(lambda: self._switch(view, brought))

        self.host.in_background(work)

    def _switch(self, view: SessionView, brought: Sequence[Outcome]) -> None:
        self.watch.end()
        self.session = view.id
        self.lines = self._event_lines()
        self.say("text", _("A new chat.") if not view.messages else "")
        self.show_resumed(view)
        self.show_results(brought)
        self.front.changed()

    # -- what the prompt shows ------------------------------------------------------------------------------------

    def prompt(self) -> str:
        """The words before the cursor."""
        return self.going.prompt or self.asking.prompt or self.watch.prompt

    def status(self) -> str:
        """The line under the prompt: mode, model, what runs, what waits, context and cost."""
        view = self.engine.view(self.session)
        parts = [view.mode, one_line(view.model, 40)]
        if self.asking.waiting:
            parts.append(_("waits for your answer, Esc stops"))
        elif view.busy:
            parts.append(_("working, Esc stops"))
        waiting = len(self.engine.queued(self.session))
        if waiting:
            parts.append(ngettext("{n} queued", "{n} queued", waiting).format(n=waiting))
        runs = [row for row in self.engine.agents() if row.kind == "batch" and row.live]
        parts += [f"{row.name} {row.activity}".rstrip() for row in runs]
        beside = sum(row.live and row.kind not in ("chat", "batch") for row in self.engine.agents())
        if beside:
            parts.append(ngettext("{n} agent", "{n} agents", beside).format(n=beside))
        if view.context_tokens:
            size = f"/{thousands(view.context_window)}" if view.context_window else ""
            parts.append(f"{thousands(view.context_tokens)}{size}")
        if view.usage.cost_known and view.usage.cost_usd:
            parts.append(money(view.usage))
        return " · ".join(parts)
