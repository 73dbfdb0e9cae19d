"""A real server that is down for one row, now and then, or in the middle of a cap: no other row pays for it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch import health
from hermes_engine.events import Notice
from tests.batch.served import prompt_of, run
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, chunk, drop, say, status, stream


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FIRST_WAIT", 0.05)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_row_that_gets_503_for_ever_holds_nobody_up(serve: Serve, tmp_path: Path, workers: int) -> None:
    """Also where it is the last row, and with nobody else to find out that the server is there."""
    server = serve(lambda seen: status(503, "busy") if prompt_of(seen) == "bad" else say("Yes.", "hm"))
    began = time.monotonic()
    done = run(tmp_path, server, ["a", "bad", "b", "c", "bad"], num_workers=workers)
    assert done.counts == {"total": 5, "kept": 3, "failed": 2}
    assert time.monotonic() - began < 20
    assert {row["error_kind"] for row in done.rows("failed.jsonl")} == {"endpoint_down"}
    probes = [seen for seen in server.requests if prompt_of(seen) == "Hello"]
    assert probes
    assert all(seen.body["max_tokens"] == 1 and not seen.tools for seen in probes)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_server_that_refuses_every_third_request_loses_no_row(serve: Serve, tmp_path: Path, workers: int) -> None:
    server = serve(lambda seen: status(503, "busy") if seen.index % 3 == 0 else say("Yes.", "hm"))
    done = run(tmp_path, server, [f"p{number}" for number in range(40)], num_workers=workers)
    assert done.counts == {"total": 40, "kept": 40}
    told = [event.text for event in done.events if isinstance(event, Notice) and "waits" in event.text]
    assert len(told) <= 3, "short pauses are nobody's concern"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (status(500, "broken"), "broken"),
        (drop(), "closed"),
        (stream([chunk({"content": "half an ans"})], end="cut"), "broke within the reply"),
    ],
    ids=["500", "dropped", "cut off"],
)
def test_a_server_that_breaks_for_every_row_stops_the_run(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, says: str
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: low / 50)  # the waits between tries
    server = serve([answer])
    done = run(tmp_path, server, [f"p{number}" for number in range(60)], num_workers=22)
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)
    assert done.summary.reason.startswith("20 rows in a row failed for one reason: ")
    assert says in done.summary.reason
    assert done.counts == {"total": 60, "pending": 60}
    assert len(server.requests) <= 3 * 44
    again = run(tmp_path, serve([say("Yes.", "hm")]), resume=True)
    assert again.counts == {"total": 60, "kept": 60}


def test_rows_in_flight_when_a_cap_is_met_are_finished(serve: Serve, tmp_path: Path) -> None:
    """They are paid for: however long they take, they are not cut off."""
    usage = {"prompt_tokens": 600, "completion_tokens": 400}

    def script(seen: Seen) -> Answer:
        return say("Yes.", "hm", usage=usage, first_delay=0.0 if prompt_of(seen) == "p0" else 4.0)

    server = serve(script)
    done = run(tmp_path, server, [f"p{number}" for number in range(12)], max_total_tokens=900, num_workers=4)
    assert len(server.requests) == 4
    assert done.counts == {"total": 12, "kept": 4, "pending": 8}
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)


def test_a_cap_that_is_met_by_the_last_row_stops_nothing(serve: Serve, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 600, "completion_tokens": 400}
    server = serve(lambda seen: say("Yes.", "hm", usage=usage))
    done = run(tmp_path, server, ["a", "b"], max_total_tokens=2000, num_workers=1)
    assert (done.summary.state, done.summary.exit_code) == ("done", 0)


@pytest.mark.parametrize(
    "cap", [{"max_total_tokens": 900}, {"max_cost_usd": 0.5, "price_in": 1, "price_out": 1}], ids=["tokens", "cost"]
)
def test_a_cap_that_cannot_be_kept_ends_the_run(serve: Serve, tmp_path: Path, cap: dict[str, Any]) -> None:
    """A server that tells no usage would spend without end under a cap that counts nothing."""
    server = serve(lambda seen: say("Yes.", "hm", usage=None))
    done = run(tmp_path, server, [f"p{number}" for number in range(30)], num_workers=1, **cap)
    assert len(server.requests) == 3
    assert done.counts == {"total": 30, "kept": 3, "pending": 27}
    assert done.summary.exit_code == 1
    name = next(iter(cap))
    assert done.summary.reason.endswith(f"so the cap cannot be kept; go on without it: --{name} none")
    assert done.summary.capped == ""
    without: dict[str, Any] = {name: "none"}
    again = run(tmp_path, server, resume=True, **without)
    assert (again.summary.state, again.counts["kept"]) == ("done", 30)
