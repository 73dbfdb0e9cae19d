"""Orders between processes: cancel, stop, answer, steer. One table; an order is taken by exactly one instance."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from hermes_engine.errors import UsageError
from hermes_engine.store.database import Database, clean

OrderKind = Literal["cancel", "stop", "answer", "steer"]


@dataclass(frozen=True, slots=True)
class Order:
    """One order.

    Attributes:
        id: grows with time.
        kind: cancel one agent | stop an agent and all below it | answer a request | steer an agent.
        agent: whom it concerns; "" for the instance itself.
        instance: who is to carry it out; "" for whoever has the agent.
        payload: JSON values: {"request", "choice", "note"} of an answer, {"text"} of a steer.
        created: seconds since the epoch.
    """

    id: int
    kind: OrderKind
    agent: str = ""
    instance: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    created: float = 0.0


class OrderBook:
    """The orders' table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def post(
        self, kind: OrderKind, *, agent: str = "", instance: str = "", payload: Mapping[str, Any] | None = None
    ) -> int:
        """Writes an order for the instance that runs `agent` (or for a named one); returns its number.

        Raises:
            UsageError: no such kind, or nobody runs that agent.
        """
        if kind not in get_args(OrderKind):
            raise UsageError(f"there is no order {kind!r}")
        with self._database.write() as connection:
            target = instance
            if not target:
                row = connection.execute(
                    "SELECT instance FROM agents WHERE id = ? AND ended IS NULL", (agent,)
                ).fetchone()
                if row is None:
                    raise UsageError(f"no agent {agent!r} is at work")
                target = row["instance"]
            cursor = connection.execute(
                "INSERT INTO orders (instance, agent, kind, payload, created) VALUES (?,?,?,?,?)",
                (target, agent, kind, clean(json.dumps(dict(payload or {}))), time.time()),
            )
            return int(cursor.lastrowid or 0)

    def take(self, instance: str) -> tuple[Order, ...]:
        """Claims every order that waits for the instance, oldest first. No other caller gets the same ones."""
        if not self._database.read("SELECT 1 FROM orders WHERE instance = ? AND taken IS NULL LIMIT 1", (instance,)):
            return ()
        with self._database.write() as connection:
            rows = connection.execute(
                "UPDATE orders SET taken = ?, taken_by = ? WHERE instance = ? AND taken IS NULL RETURNING *",
                (time.time(), instance, instance),
            ).fetchall()
        orders = [
            Order(row["id"], row["kind"], row["agent"], row["instance"], json.loads(row["payload"]), row["created"])
            for row in rows
        ]
        return tuple(sorted(orders, key=lambda order: order.id))

    def taken(self, order: int) -> bool:
        """Whether the order was taken."""
        return bool(self._database.read("SELECT 1 FROM orders WHERE id = ? AND taken IS NOT NULL", (order,)))


class ChangeWatch:
    """Tells cheaply whether another process changed the database since the last look.

    To be asked on one thread that does not itself write: SQLite counts only changes of other connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: int | None = None

    def changed(self) -> bool:
        """True at the first look and after each change."""
        version = self._database.data_version()
        if version == self._seen:
            return False
        self._seen = version
        return True
