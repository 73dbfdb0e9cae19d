"""What a person does to an agent: stop, tell, answer, run again, copy, open as a chat; here or, by an order, in another
program. Every failure is told as one line. Knows no widget.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from hermes_engine.errors import HermesError, UsageError
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.requests import Answer
    from hermes_engine.session import Engine
    from hermes_engine.store.orders import OrderKind
    from hermes_engine.work.supervisor import AgentRow
    from hermes_tui.desk import Desk
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.screens.host import Host

STOP_SECONDS = 10.0
"""So long an agent that was stopped is waited for before it is told something."""

Remark = Callable[[str], None]


class Acting:
    """Acts on agents for one screen; `remark` shows a passing line."""

    def __init__(self, desk: Desk, host: Host, remark: Remark) -> None:
        self._desk, self._host, self._remark = desk, host, remark

    async def _tried(self, act: Callable[[Engine], Awaitable[AgentRow | None]]) -> AgentRow | None:
        engine = self._desk.engine
        try:
            if engine is None:
                raise UsageError(_("no model is set up yet"))
            return await act(engine)
        except HermesError as error:
            self._remark(error.line)
            return None

    async def _order(
        self, engine: Engine, kind: OrderKind, agent: str, payload: Mapping[str, Any] | None = None
    ) -> None:
        await self._desk.off_loop(lambda: engine.tasks.order(kind, agent, payload))

    async def stop(self, item: AgentItem, *, subtree: bool) -> None:
        """Stops what it does and what its turn started; with `subtree` everything below it."""

        async def act(engine: Engine) -> None:
            if item.place == "elsewhere":
                await self._order(engine, "stop" if subtree else "cancel", item.id)
                words = _("{name} was asked to stop")
            elif item.kind == "batch":
                words = _("Stopping {name}; what is in flight ends first") if engine.stop_batch(item.name) else ""
            else:
                stopped = engine.stop_agent(item.id, subtree=subtree)
                words = (_("Stopping {name} and all below it") if subtree else _("Stopping {name}")) if stopped else ""
            self._remark((words or _("{name} does nothing that could be stopped")).format(name=item.name))

        await self._tried(act)

    async def retry(self, item: AgentItem) -> AgentRow | None:
        """Runs an ended one's task again; one that was interrupted or handed over goes on. The new agent, if any."""

        async def act(engine: Engine) -> AgentRow:
            _ours(item)
            resumable = item.resumable
            again = engine.tasks.resume if resumable else engine.tasks.retry
            row = await self._desk.off_loop(lambda: again(item.id))
            self._remark((_("{name} goes on") if resumable else _("{name} begins again")).format(name=item.name))
            return row

        return await self._tried(act)

    async def tell(self, item: AgentItem, text: str, *, stop: bool = False) -> AgentRow | None:
        """Says something to it, at its next step, or with `stop` after what it does now was stopped.

        Returns:
            the agent that was told: another one in the same conversation where it had ended.
        """

        async def act(engine: Engine) -> AgentRow | None:
            if item.place == "elsewhere":
                await self._order(engine, "steer", item.id, {"text": text})
                self._remark(_("Sent to its program; it hears it at its next step"))
                return None
            if any(row.kind == "chat" and row.session == item.session for row in engine.agents()):
                raise UsageError(_("{name} is open as a chat").format(name=item.name), hint=_("write it there"))
            if stop and engine.stop_agent(item.id, subtree=False):
                await self._desk.off_loop(lambda: _wait(engine, item.id))
            return await self._desk.off_loop(lambda: engine.tasks.tell(item.id, text))

        return await self._tried(act)

    async def answer(self, item: AgentItem, request: str, answer: Answer) -> None:
        """Answers what it asks."""

        async def act(engine: Engine) -> None:
            if item.place == "elsewhere":
                payload = {"request": request, "choice": answer.choice, "note": answer.note}
                await self._order(engine, "answer", item.id, payload)
                self._remark(_("The answer is on its way"))
            elif not engine.answer(request, answer):
                self._remark(_("That question no longer waits"))

        await self._tried(act)

    def copy(self, item: AgentItem, said: str) -> None:
        """Copies its result, else what it `said` last."""
        record = item.record
        text = (record.answer or record.error) if record else ""
        text = text or said or self._last_words(item)
        self._remark(self._host.copy(text) if text else _("{name} has said nothing yet").format(name=item.name))

    def _last_words(self, item: AgentItem) -> str:
        """What an agent at work here said last."""
        engine = self._desk.engine
        try:
            messages = engine.view(item.session).messages if engine is not None and item.place == "here" else ()
        except HermesError:
            return ""
        return next((one.content for one in reversed(messages) if one.role == "assistant" and one.content), "")

    def promote(self, item: AgentItem) -> bool:
        """Opens its conversation as the chat; whether that may be."""
        reason = ""
        if item.kind == "batch":
            reason = _("A batch run is no chat")
        elif item.place == "elsewhere":
            reason = _("It works in another program ({where}); open it there").format(where=item.where)
        elif item.busy and item.kind != "chat":
            reason = _("{name} is at work: m tells it something, x stops it").format(name=item.name)
        if reason:
            self._remark(reason)
            return False
        self._host.run_session(resume=item.session)
        return True


def _ours(item: AgentItem) -> None:
    if item.place == "elsewhere":
        raise UsageError(_("it works in another program ({where})").format(where=item.where))
    if item.kind in ("chat", "batch"):
        raise UsageError(_("only agents and tasks can be run again"))


def _wait(engine: Engine, agent: str) -> None:
    """Blocks until it has ended."""
    end = time.monotonic() + STOP_SECONDS
    while engine.supervisor.at_work(agent):
        if time.monotonic() > end:
            raise UsageError(_("it does not stop"))
        time.sleep(0.01)
