"""The disk side of the engine: opening and keeping chats, recording events, remembering rules. All of it blocks.

Called on the store's thread, or before the engine's loop has work; knows no loop.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.errors import HermesError, UsageError
from hermes_engine.events import Event, Notice, ReplyFinished, StepRetried, StepStarted, TextDelta, ThoughtDelta
from hermes_engine.messages import Message
from hermes_engine.profiles import Resolved
from hermes_engine.protocols import AgentSpec
from hermes_engine.redaction import Redactor
from hermes_engine.sandbox.orphans import end_instance, end_orphans
from hermes_engine.settings import Overrides
from hermes_engine.store.agents import OPEN_STATES, AgentRecord, AgentStore
from hermes_engine.store.copies import copied
from hermes_engine.store.instances import Instances
from hermes_engine.store.migrations import open_state
from hermes_engine.store.orders import ChangeWatch, Order, OrderBook
from hermes_engine.store.recorder import Recorder
from hermes_engine.store.recordings import Recordings
from hermes_engine.store.sessions import SessionRow, SessionStore
from hermes_engine.tools.result import prune
from hermes_engine.toolsets import expand
from hermes_engine.work.view import SessionView

NEWEST = 2
"""Runs of a conversation in which something new may have been recorded."""

REMEMBERED = ("profile", "base_url", "max_turns", "reasoning_effort")
"""Flags of a program that hold for its tasks when another one goes on with them. What else is given for a chat (model,
mode, tools) is kept with each; a key is kept nowhere.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Saved:
    """A chat as it is opened."""

    id: str
    spec: AgentSpec
    messages: tuple[Message, ...] = ()
    title: str = ""
    folder: Path = Path()
    """Where it worked, there or not any more."""


def unsaved(spec: AgentSpec) -> Saved:
    """A chat that is kept nowhere."""
    return Saved(f"x{secrets.token_hex(4)}", spec)


class State:
    """What a process keeps in its home. Opens the database at once.

    Args:
        resolved: settings in effect.
        redactor: takes secrets out of what is recorded.
        on_notice: hears what a person should read, on any thread.
    """

    def __init__(self, resolved: Resolved, redactor: Redactor, *, on_notice: Callable[[str, str], None]) -> None:
        home = resolved.home.ensure()
        self._resolved, self._on_notice, self.redactor = resolved, on_notice, redactor
        self._database = open_state(home.state_db, on_notice=lambda text: on_notice("info", text))
        self._instances = Instances(self._database)
        given = [(name, getattr(resolved.overrides, name)) for name in REMEMBERED]
        flags = {name: redactor.text(value) if isinstance(value, str) else value for name, value in given if value}
        self.instance = self._instances.register(Path.cwd(), flags)
        self.sessions = SessionStore(self._database)
        self.agents = AgentStore(self._database)
        self.orders = OrderBook(self._database)
        self._changes = ChangeWatch(self._database)
        self._copies: set[str] = set()

        def told(notice: Notice) -> None:
            on_notice(notice.level, notice.text)

        self.recorder = Recorder(self._database, instance=self.instance, redactor=redactor, on_notice=told)

    def clean_up(self) -> None:
        """Closes what dead instances left open, ends their processes, lets go what is too old."""
        for task in (self._instances.bury, self.agents.close_dead, end_orphans, self._prune):
            try:
                task()
            except (HermesError, OSError):
                log.exception("clean-up at start: %s", task)

    def _prune(self) -> None:
        days = self._resolved.settings.storage.keep_days
        if days:
            Recordings(self._database).prune(days)
            for folder in (self._resolved.home.outputs, self._resolved.home.drafts):
                prune(folder, days)

    def close(self, *, unused: Iterable[str]) -> None:
        """Writes what waits; drops `unused` chats, where nothing was said or started; ends daemons of our commands."""
        self.recorder.close()
        for step in (lambda: self._drop(unused), self._release, end_instance):
            try:
                step()
            except (HermesError, OSError):
                log.exception("closing the state")
        self._database.close()

    def _drop(self, unused: Iterable[str]) -> None:
        for session in unused:
            if not self.sessions.has_started(session):
                self.sessions.delete(session)

    def _release(self) -> None:
        self.sessions.release(self.instance)
        self._instances.end(self.instance)

    # -- chats ----------------------------------------------------------------------------------------------------

    def open_session(self, spec: AgentSpec, resume: str | None, continue_last: bool) -> Saved:
        """A new chat, the one that `resume` means, or the last of the folder (a new one where there is none).

        Raises:
            UsageError: no such chat, or it is open in another Hermes.
        """
        row = self.sessions.find(resume) if resume else None
        if continue_last and row is None:
            row = self.sessions.latest(spec.cwd)
        if row is not None:
            return self._reopen(spec, row)
        return Saved(self.new_session(spec), spec)

    def new_session(self, spec: AgentSpec, title: str = "", parent: str = "") -> str:
        """A new conversation, held by this process; its id."""
        session = self.sessions.create_session(
            cwd=spec.cwd,
            model=spec.model,
            profile=spec.profile,
            kind=spec.kind,
            parent=parent,
            mode=spec.mode if spec.kind != "chat" or self._resolved.mode_named else "",
            toolsets=spec.toolsets,
        )
        self.hold(session)
        if title:
            self.sessions.set_title(session, title)
        return session

    def copy(self, view: SessionView, back: int) -> tuple[str, str]:
        """A copy of an open chat as it is now, without its last `back` user messages.

        Returns:
            its id, and the first message left out ("" when none is).

        Raises:
            UsageError: nothing was said in it, or not so many messages.
        """
        made, left_out = copied(self.sessions, view.id, back=back)
        self.sessions.set_model(made, view.model)
        self.sessions.set_toolsets(made, view.toolsets)
        if self._resolved.overrides.mode or self.sessions.row(made).mode:
            self.sessions.set_mode(made, view.mode)
        self._copies.add(made)
        return made, left_out

    def remembered(self, spec: AgentSpec, session: str) -> Saved:
        """What a conversation worked with and where, for one like it; it stays whose it is. Raises UsageError."""
        row = self.sessions.find(session)
        return Saved(row.id, self._as_it_was(spec, row), (), row.title, row.cwd)

    def hold(self, session: str) -> str:
        """Takes a conversation for this process; "" when it is, else the id of the living one that has it."""
        return self.sessions.hold(session, self.instance, self._instances.alive)

    def let_go(self, session: str) -> None:
        """Gives a conversation back that has ended here."""
        self.sessions.release(self.instance, session)

    def _held(self, session: str, holder: str) -> UsageError:
        """Why a conversation cannot be opened here."""
        process = self.programs().get(holder, (0, ""))[0]
        at_work = [record for record in self.elsewhere() if record.session == session and record.kind != "chat"]
        if at_work:
            return UsageError(
                f"the chat {session} is still at work in process {process}",
                hint=f"wait for it, or stop it: hermes tasks cancel {at_work[0].id}",
            )
        return UsageError(
            f"the chat {session} is open in another Hermes, process {process}", hint="close it there first"
        )

    def _reopen(self, spec: AgentSpec, row: SessionRow) -> Saved:
        if holder := self.hold(row.id):
            raise self._held(row.id, holder)
        if spec.kind == "chat" and row.kind != "chat":
            self.sessions.set_kind(row.id, "chat")
        messages = self.sessions.load(row.id)
        cut_off = self._cut_off(row.id) if messages and messages[-1].role in ("user", "tool") else None
        if cut_off is not None:
            self.sessions.append(row.id, [cut_off])
            messages.append(cut_off)
        return Saved(row.id, self._as_it_was(spec, row), tuple(messages), row.title, row.cwd)

    def _cut_off(self, session: str) -> Message | None:
        """What a reply had brought when its program was killed: it was paid for. None when there is nothing."""
        recordings = Recordings(self._database)
        runs = recordings.runs(session)
        if not runs or (runs[-1].ended is not None and runs[-1].status != "interrupted"):
            return None
        text: list[str] = []
        thought: list[str] = []
        for event in recordings.events(runs[-1].id):
            match event:
                case StepStarted() | StepRetried() | ReplyFinished():
                    text, thought = [], []
                case TextDelta():
                    text.append(event.text)
                case ThoughtDelta():
                    thought.append(event.text)
        if not "".join(text).strip():
            return None
        return Message("assistant", "".join(text), reasoning="".join(thought), partial=True)

    def _as_it_was(self, spec: AgentSpec, row: SessionRow) -> AgentSpec:
        """The spec with what the chat had, but for what the command line names now.

        A copy made here has what the person chose since the program was started.
        """
        flags = Overrides() if row.id in self._copies else self._resolved.overrides
        changes: dict[str, Any] = {}
        if row.cwd.is_dir():
            changes["cwd"] = row.cwd
        if row.model and not flags.model:
            changes["model"] = row.model
        if row.mode and not flags.mode:
            changes["mode"] = row.mode
        if row.toolsets is not None and flags.toolsets is None:
            changes["toolsets"] = expand(row.toolsets)
        return dataclasses.replace(spec, **changes)

    # -- agents ---------------------------------------------------------------------------------------------------

    def elsewhere(self) -> tuple[AgentRecord, ...]:
        """Agents at work in other living processes, the newest first."""
        living = self._instances.living() - {self.instance}
        return tuple(record for record in self.agents.list(states=OPEN_STATES) if record.instance in living)

    def folder_of(self, session: str) -> Path | None:
        """Where a conversation works, when that is still there."""
        try:
            folder = self.sessions.find(session).cwd
        except UsageError:
            return None
        return folder if folder.is_dir() else None

    def programs(self) -> dict[str, tuple[int, str]]:
        """Pid and folder of the running processes, by instance."""
        return self._instances.programs()

    def take_orders(self) -> tuple[Order, ...]:
        """What other processes ask of this one."""
        return self.orders.take(self.instance) if self._changes.changed() else ()

    def events(self, session: str, since: Mapping[str, int] | None = None) -> Iterator[Event]:
        """What is recorded of a conversation, run by run; with `since` only of its newest runs, from there on."""
        recordings = Recordings(self._database)
        runs, known = recordings.runs(session), since or {}
        newest = runs if since is None else runs[-NEWEST:]
        return (event for run in newest for event in recordings.events(run.id, known.get(run.id, 0)))

    def keep(self, session: str, key: str, value: Any) -> None:
        """Saves one fact about a chat: title, model, mode, toolsets or (added up) usage."""
        setters: dict[str, Callable[[str, Any], None]] = {
            "title": self.sessions.set_title,
            "model": self.sessions.set_model,
            "mode": self.sessions.set_mode,
            "toolsets": self.sessions.set_toolsets,
            "usage": self.sessions.add_usage,
        }
        setters[key](session, value)

    def remember_rule(self, rule: str) -> None:
        """Writes an "always" into `approvals.allow` of the home's config."""
        from hermes_engine.settings_edit import edit_config  # loads the editor, which most runs do without

        def change(values: MutableMapping[str, Any]) -> None:
            section = values.get("approvals") or {}
            rules = section.get("allow") or []
            rules = [rules] if isinstance(rules, str) else list(rules)
            if rule not in rules:
                section["allow"] = [*rules, rule]
                values["approvals"] = section

        try:
            edit_config(self._resolved.home.config, change)
        except HermesError as error:
            log.warning("the rule %r was not written: %s", rule, error)
            self._on_notice("warning", f"the rule is not remembered: {error.line}")
