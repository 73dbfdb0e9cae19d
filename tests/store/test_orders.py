"""Orders between processes: each is taken once, by the instance that has the agent."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_engine.errors import UsageError
from hermes_engine.store.agents import AgentRecord, AgentStore
from hermes_engine.store.database import Database
from hermes_engine.store.migrations import open_state
from hermes_engine.store.orders import ChangeWatch, OrderBook

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def book(database: Database) -> OrderBook:
    AgentStore(database).insert(AgentRecord("a", instance="i1", kind="child"))
    return OrderBook(database)


def test_an_order_goes_to_the_instance_that_has_the_agent(book: OrderBook) -> None:
    first = book.post("cancel", agent="a")
    second = book.post("answer", agent="a", payload={"request": "req_1", "choice": "no", "note": "é\ud83d"})
    other = book.post("stop", instance="i2")
    assert book.take("i2")[0].id == other
    taken = book.take("i1")
    assert [(order.id, order.kind, order.agent, order.instance) for order in taken] == [
        (first, "cancel", "a", "i1"),
        (second, "answer", "a", "i1"),
    ]
    assert taken[1].payload["request"] == "req_1"
    assert taken[0].created > 0
    assert book.take("i1") == ()
    assert book.taken(first)
    assert not book.taken(999)


def test_orders_that_can_reach_nobody_are_refused(book: OrderBook, database: Database) -> None:
    with pytest.raises(UsageError, match="no agent 'b' is at work"):
        book.post("cancel", agent="b")
    AgentStore(database).finish("a", state="done")
    with pytest.raises(UsageError, match="no agent 'a' is at work"):
        book.post("cancel", agent="a")
    with pytest.raises(UsageError, match="there is no order 'explode'"):
        book.post("explode", agent="a")  # type: ignore[arg-type]


def test_of_many_takers_one_gets_each_order(book: OrderBook) -> None:
    posted = [book.post("steer", agent="a", payload={"text": str(number)}) for number in range(40)]
    ready = threading.Barrier(8)

    def take() -> list[int]:
        ready.wait()
        return [order.id for _ in range(5) for order in book.take("i1")]

    with ThreadPoolExecutor(8) as pool:
        taken = [number for future in [pool.submit(take) for _ in range(8)] for number in future.result()]
    assert sorted(taken) == posted


POSTER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hermes_engine.store.migrations import open_state
from hermes_engine.store.orders import OrderBook
print(OrderBook(open_state(Path(sys.argv[1]))).post("stop", agent="a"))
"""


def test_a_watch_sees_what_another_process_posts_and_only_that(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = open_state(path)
    AgentStore(database).insert(AgentRecord("a", instance="i1"))
    watch = ChangeWatch(database)
    assert watch.changed()
    assert not watch.changed()
    posted = subprocess.run([sys.executable, "-c", POSTER, str(path), ROOT], capture_output=True, text=True, check=True)
    assert watch.changed()
    assert not watch.changed()
    assert [order.id for order in OrderBook(database).take("i1")] == [int(posted.stdout)]
    database.close()
