"""A server that is down pauses the run; one refusal for all ends it; neither is a row's fault."""

from __future__ import annotations

import asyncio

import pytest

from hermes_engine.batch import health
from hermes_engine.batch.filters import Verdict
from hermes_engine.batch.health import FirstTries, Outage, Rejects
from hermes_engine.batch.job import RowResult
from hermes_engine.batch.ledger import Failure
from hermes_engine.errors import EndpointDown
from hermes_engine.events import ReplyFinished

DOWN = EndpointDown("connection refused")
BUSY = EndpointDown("HTTP 503", status=503)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FIRST_WAIT", 0.02)


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.given_up: list[str] = []

    def __call__(self, level: str, text: str) -> None:
        self.lines.append((level, text))


@pytest.fixture
def told() -> Told:
    return Told()


async def test_the_run_pauses_and_goes_on_with_the_first_reply(told: Told) -> None:
    outage = Outage(60, told, told.given_up.append)
    await outage.passable()
    rows = [asyncio.create_task(outage.wait_out(DOWN)) for _ in range(20)]
    newcomer = asyncio.create_task(outage.passable())
    await asyncio.sleep(0.03)
    downs = [outage.down]
    assert not newcomer.done()
    assert sum(row.done() for row in rows) == 1
    outage.hear(ReplyFinished(partial=True))
    downs.append(outage.down)
    outage.hear(ReplyFinished(text="hi"))
    await asyncio.wait_for(asyncio.gather(*rows, newcomer), 1)
    assert [*downs, outage.down] == [True, True, False]
    assert outage.seconds >= 0.02
    assert [level for level, _ in told.lines] == ["warning", "info"]
    assert "connection refused" in told.lines[0][1]
    assert told.given_up == []


async def test_a_refusal_is_an_answer_too(told: Told) -> None:
    outage = Outage(60, told, told.given_up.append)
    await outage.wait_out(DOWN)
    outage.ended(RowResult("timeout", error_kind="timeout"))
    outage.ended(RowResult("error", error_kind="endpoint_down"))
    down = outage.down
    outage.ended(RowResult("error", error_kind="key_refused"))
    assert (down, outage.down) == (True, False)


async def test_the_limit_ends_the_run_once(told: Told) -> None:
    outage = Outage(0.1, told, told.given_up.append)

    async def row() -> None:
        while True:
            await outage.wait_out(DOWN)

    ended = await asyncio.wait_for(asyncio.gather(*(row() for _ in range(5)), return_exceptions=True), 5)
    assert all(isinstance(error, EndpointDown) for error in ended)
    assert outage.given_up
    assert len(told.given_up) == 1
    with pytest.raises(EndpointDown):
        await outage.wait_out(DOWN)


async def another_row_is_answered(outage: Outage) -> None:
    outage.hear(ReplyFinished(text="others get answers"))


async def tries_of_one_row(outage: Outage) -> int:
    for number in range(100):
        try:
            await outage.wait_out(DOWN)
        except EndpointDown:
            return number
        await asyncio.create_task(another_row_is_answered(outage))
    return -1


async def test_one_row_that_alone_finds_it_down_fails_itself(told: Told) -> None:
    outage = Outage(60, told, told.given_up.append)
    assert await asyncio.wait_for(asyncio.create_task(tries_of_one_row(outage)), 5) == health.LONELY_TRIES
    assert not outage.given_up


async def test_a_lonely_row_waits_longer_each_time_and_does_not_pause_the_others(told: Told) -> None:
    outage = Outage(60, told, told.given_up.append)
    row = asyncio.create_task(tries_of_one_row(outage))
    begun, downs = asyncio.get_running_loop().time(), 0
    while not row.done():
        downs += outage.down
        await asyncio.sleep(0.005)
    assert asyncio.get_running_loop().time() - begun >= 0.02 * (1 + 1 + 2 + 4 + 8)
    assert downs <= 6, "only its first find pauses the run, for one wait"


async def test_an_answer_makes_a_rows_earlier_finds_forgotten(told: Told) -> None:
    """A server that refuses now and then costs no row: neither this one later on, nor the next of its worker."""
    outage = Outage(60, told, told.given_up.append)

    async def worker() -> None:
        for _step in range(10):
            for _ in range(health.LONELY_TRIES - 1):
                await outage.wait_out(DOWN)
                await asyncio.create_task(another_row_is_answered(outage))
            if _step % 2:
                outage.hear(ReplyFinished(text="its own"))
            else:
                await outage.passable()

    await asyncio.wait_for(asyncio.create_task(worker()), 20)
    assert outage.given_up is False


async def test_when_rows_tried_enough_the_run_asks_by_itself(told: Told) -> None:
    asked: list[bool] = []
    answers = iter([BUSY, BUSY, None])

    async def probe() -> EndpointDown | None:
        asked.append(outage.down)
        return next(answers)

    outage = Outage(60, told, told.given_up.append, probe=probe)
    for _ in range(health.ROW_TRIES):
        await outage.wait_out(BUSY)
    assert asked == []
    await asyncio.wait_for(outage.wait_out(BUSY), 5)
    assert asked == [True, True, True]
    assert not outage.down
    assert [level for level, _ in told.lines] == ["warning", "info"]


async def test_f_the_only_row_left_does_not_hold_the_run_for_an_hour(told: Told) -> None:
    """A server that answers all but one request is up: the row fails, whatever `endpoint_wait` allows."""
    probes = 0

    async def probe() -> EndpointDown | None:
        nonlocal probes
        probes += 1
        return None

    async def row() -> None:
        while True:
            await outage.wait_out(BUSY)

    outage = Outage(3600, told, told.given_up.append, probe=probe)
    with pytest.raises(EndpointDown):
        await asyncio.wait_for(asyncio.create_task(row()), 5)
    assert probes == health.LONELY_TRIES
    assert not outage.given_up
    assert not outage.down


async def test_where_nobody_answers_at_all_rows_go_on_trying(told: Told) -> None:
    """No row can be to blame for a refused connection, and the server sees nothing but rows when it is back."""

    async def probe() -> EndpointDown | None:
        raise AssertionError("not asked")

    outage = Outage(60, told, told.given_up.append, probe=probe)
    for _ in range(health.ROW_TRIES + 3):
        await outage.wait_out(DOWN)
    assert outage.down


async def test_a_pause_that_ends_with_the_first_try_is_not_told(told: Told) -> None:
    outage = Outage(60, told, told.given_up.append)
    row = asyncio.create_task(outage.wait_out(DOWN))
    await row
    outage.hear(ReplyFinished(text="hi"))
    assert told.lines == []
    with_name = EndpointDown("busy", retry_after=5)
    row = asyncio.create_task(outage.wait_out(with_name))
    await asyncio.sleep(0.01)
    assert [level for level, _ in told.lines] == ["warning"], (
        "the server names a long wait: it is told at its beginning"
    )
    outage.hear(ReplyFinished(text="hi"))
    await row


def refused(text: str = "401 bad key, request 8f3ac2d1", **more: object) -> RowResult:
    values = {"stop_reason": "error", "error": text, "error_kind": "key_refused", "api_calls": 1, **more}
    return RowResult(**values)  # type: ignore[arg-type]


def test_twenty_equal_first_tries_in_a_row() -> None:
    watch = FirstTries()
    before = Failure(0, 1, 2, {})
    ends = [
        watch.note(f"r{n}", refused(f"401 bad key, request {n:08x}"), before if n == 3 else None) for n in range(20)
    ]
    assert ends == [False] * 19 + [True]
    assert watch.streak[3] == ("r3", before)
    assert watch.same(refused("401 bad key, request 00000fff"))
    assert not watch.same(refused("400 no such model"))


@pytest.mark.parametrize("kind", ["server_error", "stream_broken", "stream_stalled"])
def test_twenty_rows_that_met_a_broken_server_with_every_try(kind: str) -> None:
    watch = FirstTries()
    broken = refused("500 broken (tried 3×)", error_kind=kind, api_calls=3)
    assert [watch.note(f"r{n}", broken, None) for n in range(20)] == [False] * 19 + [True]
    assert watch.same(broken)
    assert not watch.same(refused("500 broken (tried 3×)", error_kind=kind, api_calls=3, turns=1))
    watch.note("kept", RowResult("done", turns=1, api_calls=1), None)
    assert not any(watch.note("r", broken, None) for _ in range(19))


@pytest.mark.parametrize(
    "other",
    [
        RowResult("done", turns=1, api_calls=1),
        refused("404 no such model"),
        refused(api_calls=3),
        refused(error_kind="server_error", error="500 broken", api_calls=3),
        refused(error_kind="rate_limit", api_calls=3),
        refused(turns=1),
        refused(api_calls=0, error_kind="row_place"),
    ],
)
def test_anything_else_begins_anew(other: RowResult) -> None:
    watch = FirstTries()
    assert not any(watch.note("r", refused(), None) for _ in range(19))
    watch.note("x", other, None)
    assert not any(watch.note("r", refused(), None) for _ in range(18))


def test_f2_rejects_of_one_reason_are_said_once(told: Told) -> None:
    watch = Rejects(told)
    for _ in range(50):
        watch.note(Verdict("rejected", "no_reasoning"))
    assert len(told.lines) == 1
    assert told.lines[0][0] == "warning"
    assert "--reasoning_effort" in told.lines[0][1]
    assert told.lines[0][1].endswith("; a resume leaves rejected rows as they are, a new run works them again")
    for verdict in (Verdict("kept"), Verdict("rejected", "invented_tool")):
        quiet = Told()
        watch = Rejects(quiet)
        watch.note(verdict)
        for _ in range(50):
            watch.note(Verdict("rejected", "no_reasoning"))
        assert quiet.lines == []
