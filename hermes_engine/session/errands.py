"""Carries out what other running programs ask of this one's agents: stop, tell, answer (table `orders`)."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor

from hermes_engine.errors import StateError
from hermes_engine.requests import Answer, Broker
from hermes_engine.session.state import State
from hermes_engine.store.orders import Order
from hermes_engine.work.conversation import Conversation
from hermes_engine.work.supervisor import Supervisor

LOOK_SECONDS = 0.5
"""Between two looks; a look at a database nobody changed reads one number."""

log = logging.getLogger(__name__)


async def run_errands(
    state: State, pool: Executor, supervisor: Supervisor, broker: Broker, open: dict[str, Conversation]
) -> None:
    """Looks for orders until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            orders = await loop.run_in_executor(pool, state.take_orders)
        except StateError:
            log.exception("orders of other programs could not be read")
            continue
        for order in orders:
            carry_out(order, supervisor, broker, open)


def carry_out(order: Order, supervisor: Supervisor, broker: Broker, open: dict[str, Conversation]) -> None:
    """Does what one order asks; what no longer can be done is left."""
    log.info("order %d: %s %s", order.id, order.kind, order.agent)
    row = supervisor.row(order.agent)
    match order.kind:
        case "cancel":
            supervisor.stop(order.agent, below="bound")
        case "stop":
            supervisor.stop(order.agent)
        case "steer":
            talk = open.get(row.session) if row else None
            if talk is not None:
                talk.say(str(order.payload.get("text", "")))
        case "answer":
            choice = order.payload.get("choice", "no")
            note = str(order.payload.get("note", ""))
            if choice in ("once", "session", "always", "no", "answer"):
                broker.answer(str(order.payload.get("request", "")), Answer(choice, note))
