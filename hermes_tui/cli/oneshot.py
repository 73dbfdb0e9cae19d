"""One prompt, one answer: `hermes chat -q`. The answer and nothing else on standard output; progress and errors
on standard error. Nobody is there to be asked, so what would ask is denied.

Knows the engine by its front door only. Loads neither Textual nor prompt_toolkit.
"""

from __future__ import annotations

import queue
import sys
import time
from typing import TYPE_CHECKING, Literal

from hermes_engine.errors import UsageError
from hermes_engine.events import Event, TextDelta, ToolFinished, TurnFinished, TurnStarted, to_json
from hermes_tui.cleaning import clean, one_line
from hermes_tui.cli.flags import Flags, here, resolve
from hermes_tui.cli.presses import stopping
from hermes_tui.printing.lines import EventLines
from hermes_tui.printing.records import out_json, out_json_line
from hermes_tui.printing.streams import err, error, out
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.session import Engine

Form = Literal["text", "json", "events"]
STOP_GRACE_SECONDS = 4.0
"""How long a stopped turn may take to end itself."""


def ask_once(flags: Flags, prompt: str, *, form: Form = "text", quiet: bool = False) -> int:
    """Runs one turn and prints its answer.

    Returns:
        0 when the model answered, 130 when interrupted, else 1; a partial answer is printed all the same.

    Raises:
        UsageError, ConfigError: before anything was asked.
    """
    if not prompt.strip():
        raise UsageError(_("the prompt is empty"))
    if sys.stdout is None:
        raise UsageError(_("standard output is closed: there is no place for the answer"))
    cwd = here()
    resolved = resolve(flags)
    resolved.endpoint_for()
    from hermes_engine.session import Engine

    inbox: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    engine = Engine(resolved, inbox.put, attended=False)
    engine.start()
    try:
        view = engine.open_session(cwd, resume=flags.resume, continue_last=flags.continue_last, mode=flags.mode)
        if flags.continue_last and not view.messages and not quiet:
            err(_("· no chat of this folder is saved: a new one begins"))
        turn = _Turn(engine, view.id, inbox, form=form, quiet=quiet)
        with stopping(turn.stop) as presses:
            engine.send(view.id, prompt)
            finished = turn.follow()
        turn.report_left_running()
    finally:
        engine.close()
    return _deliver(finished, view.id, view.model, form, interrupted=presses.count > 0)


class _Turn:
    """Follows one turn from the engine's events until it ends or is stopped."""

    def __init__(
        self, engine: Engine, session: str, inbox: queue.SimpleQueue[Event | None], *, form: Form, quiet: bool
    ) -> None:
        self.engine, self.session, self.inbox, self.form = engine, session, inbox, form
        self.lines = None if quiet or form == "events" else EventLines(session, answers=False, children=True)
        self._deadline = 0.0
        self._run = ""
        self._heard: list[str] = []
        self._calls = 0

    def follow(self) -> TurnFinished:
        """Prints progress until the turn's last event, and returns that."""
        while True:
            try:
                event = self.inbox.get(timeout=0.5 if self._deadline else None)
            except queue.Empty:
                event = None
            if event is not None:
                self._hear(event)
                if isinstance(event, TurnFinished) and event.run == self._run:
                    return event
            if self._deadline and time.monotonic() > self._deadline:
                return TurnFinished(
                    status="cancelled",
                    answer="".join(self._heard),
                    error=_("stopped before it had ended"),
                    tool_calls=self._calls,
                )

    def _hear(self, event: Event) -> None:
        if self.form == "events":
            out_json_line(to_json(event))
        if self.lines is not None:
            for line in self.lines.feed(event):
                err(line.text, style=line.style)
        if event.session != self.session or event.parent_run:
            return
        if isinstance(event, TurnStarted) and not self._run:
            self._run = event.run
        elif isinstance(event, TextDelta):
            self._heard.append(event.text)
        elif isinstance(event, ToolFinished):
            self._calls += 1

    def stop(self) -> None:
        """Asks it to end, within a moment. Safe within a signal handler."""
        self._deadline = time.monotonic() + STOP_GRACE_SECONDS
        self.engine.interrupt(self.session)
        self.inbox.put(None)

    def report_left_running(self) -> None:
        """Names on standard error what the turn left running: closing the engine ends it (faults 4.9)."""
        from hermes_engine.sandbox.orphans import left_behind

        left = [one_line(job.command, 120) for job in self.engine.jobs(self.session) if job.state == "running"]
        left += [row.name for row in self.engine.agents() if row.state == "running" and row.session != self.session]
        for name in left:
            err(_("hermes: ended, it was still running: {name}").format(name=name), style="yellow")
        if behind := left_behind():
            err(_("hermes: ended what was left running: {names}").format(names=", ".join(behind)), style="yellow")


def _deliver(finished: TurnFinished, session: str, model: str, form: Form, *, interrupted: bool) -> int:
    status = "cancelled" if interrupted and finished.status != "ok" else finished.status
    if form == "json":
        out_json(
            {
                "status": status,
                "answer": finished.answer,
                "session_id": session,
                "model": model,
                "turns": finished.turns,
                "tool_calls": finished.tool_calls,
                "usage": finished.usage.as_record(),
                "error": finished.error or None,
            }
        )
    elif form == "text" and finished.answer:
        out(clean(finished.answer).rstrip("\n"))
    if status == "ok":
        return 0
    if status == "cancelled":
        error(_("interrupted"))
        return 130 if interrupted else 1
    error(finished.error or status)
    return 1


def read_prompt() -> str:
    """Standard input to its end as a prompt, without its last line feed; "" when it is closed or empty.

    Says on standard error that it waits when nothing comes for two seconds.
    """
    import select

    if sys.stdin is None:
        return ""
    try:
        ready, _w, _x = select.select([sys.stdin], [], [], 2.0)
        if not ready:
            err(_("hermes: reading the prompt from standard input (Ctrl+D ends it)"))
        data = sys.stdin.buffer.read()
    except (OSError, ValueError):
        return ""
    return data.decode("utf-8-sig", errors="replace").removesuffix("\n").removesuffix("\r")
