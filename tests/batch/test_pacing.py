"""Limits a minute over all workers, one pause for all, and what a large run is said to cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from hermes_engine.batch import pacing
from hermes_engine.batch.forecast import Forecast
from hermes_engine.batch.pacing import Pace, PacedClient
from hermes_engine.clients.scripted import ScriptedClient, ScriptedReply
from hermes_engine.errors import RateLimited
from hermes_engine.events import Notice
from hermes_engine.messages import Reply, Usage, user
from hermes_engine.protocols import ModelRequest
from tests.batch.served import run
from tests.batch.support import Played, dataset, play, thinks
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, say, status

SLACK = 0.01
"""Seconds by which clocks of waiting and of looking may differ."""


class Timed(ScriptedClient):
    """Notes when it is asked."""

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        super().__init__(replies)
        self.times: list[float] = []

    async def complete(self, request: ModelRequest, on_delta: object = None) -> Reply:
        self.times.append(time.monotonic())
        return await super().complete(request)


def asked(pace: Pace, inner: Timed, number: int, prompt: str = "p") -> list[float]:
    """Sends so many requests at once; when each went out, from the first."""

    async def one(client: PacedClient) -> None:
        try:
            await client.complete(ModelRequest("m", [user(prompt)]))
        except RateLimited:
            return

    async def all_of_them() -> None:
        client = PacedClient(inner, pace)
        await asyncio.gather(*(one(client) for _ in range(number)))

    asyncio.run(all_of_them())
    return [at - inner.times[0] for at in inner.times]


def test_requests_are_spread_over_the_minute() -> None:
    times = asked(Pace(1200, None, lambda level, text: None), Timed(["a"]), 8)
    assert all(later - earlier >= 0.05 - SLACK for earlier, later in pairwise(times))


def test_tokens_are_reckoned_and_then_put_right() -> None:
    """Each reply takes 3,000 tokens of 60,000 a minute: the next one waits three seconds."""
    pace = Pace(None, 60_000, lambda level, text: None)
    heavy = Timed([Reply("a", usage=Usage(2900, 100))])

    async def main() -> None:
        client = PacedClient(heavy, pace)
        await client.complete(ModelRequest("m", [user("p" * 400)]))
        due = pace._next_tokens - heavy.times[0]
        assert due == pytest.approx(3.0, abs=0.2)
        reckoned = 400 / 4 + pace._answer
        assert reckoned == pytest.approx(100 + 275, abs=1), "what replies take is learned"

    asyncio.run(main())


def test_no_limit_is_no_wait() -> None:
    times = asked(Pace(None, None, lambda level, text: None), Timed(["a"]), 200)
    assert times[-1] < 2


def test_a_named_wait_holds_for_all() -> None:
    told: list[tuple[str, str]] = []
    pace = Pace(1200, None, lambda level, text: told.append((level, text)))
    times = asked(pace, Timed([RateLimited("429", status=429, retry_after=0.6), "a"]), 5)
    assert all(at >= 0.6 - SLACK for at in times[1:])
    assert told == [], "a short one is nobody's concern"


def test_a_long_wait_is_told_once_and_tokens_of_a_refusal_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    pace = Pace(None, 60_000, lambda level, text: told.append((level, text)))
    monkeypatch.setattr(pacing, "LONGEST_NAMED", 40.0)
    before = pace._next_tokens
    for wait in (7, 9, 900):
        pace.refused(0.0, RateLimited("429", status=429, retry_after=wait))
    assert told == [("warning", "too many requests for the server (429); all rows wait 7 s")]
    assert pace._held - time.monotonic() == pytest.approx(40, abs=1)
    pace._next_tokens += 500 * pace._token
    pace.refused(500.0, RateLimited("429", status=429))
    assert pace._next_tokens == pytest.approx(before)


def test_without_a_named_wait_only_a_row_of_refusals_holds() -> None:
    pace = Pace(None, None, lambda level, text: None)
    refusal = RateLimited("429", status=429)
    for _ in range(3):
        for _ in range(pacing.IN_A_ROW - 1):
            pace.refused(0.0, refusal)
        assert pace._held == 0.0
        pace.answered(0.0, Usage(1, 1))
    for seconds in (1, 2, 4, 8, 16, 30, 30):
        for _ in range(pacing.IN_A_ROW + 20):
            pace.refused(0.0, refusal)
        left = pace._held - time.monotonic()
        assert left == pytest.approx(seconds, abs=0.5), "requests that were under way together are one refusal"
        pace._held -= left


def test_the_servers_wait_holds_for_all_rows_of_a_run(serve: Serve, tmp_path: Path) -> None:
    first = [True]

    def script(seen: Seen) -> Answer:
        if first and first.pop():
            return status(429, headers={"Retry-After": "2"})
        return say("Done.", reasoning="hm")

    server = serve(script)
    done = run(tmp_path, server, ["a", "b", "c"], num_workers=3, requests_per_minute=120)
    assert done.counts == {"total": 3, "kept": 3}
    starts = sorted(seen.started for seen in server.requests)
    assert all(at - starts[0] >= 2 - 0.1 for at in starts[1:])
    assert sum(row["retries"] for row in done.rows()) == 1


def told_for(rows: int, usage: Usage, *, prompts: int = 20, length: float = 10.0) -> list[str]:
    told: list[str] = []
    forecast = Forecast(rows, length, lambda level, text: told.append(text))
    for _ in range(prompts):
        forecast.note("p" * 10, usage)
    return told


def test_what_a_large_run_will_cost_is_said_once() -> None:
    usage = Usage(900, 100, 0, True, 0.01, True)
    line = "the 980 rows to come: about $9.80 and 980,000 tokens, by the first 20"
    assert told_for(1000, usage, prompts=60) == [line]
    assert told_for(1000, usage, length=31) == [f"{line}; but their prompts are 3.1 times as long"]
    assert told_for(1000, usage, prompts=19) == []
    assert told_for(499, usage) == []
    assert told_for(1000, Usage(900, 100, 0, True, 0.0, False)) == [], "no price is known"


def test_a_large_run_says_it(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["p" * 10] * 30 + ["p" * 200] * 500)
    cheap = Usage(900, 100, 0, True, 0.001, True)
    ran = play(tmp_path, lambda prompt, spec: Played(thinks().messages, usage=cheap), num_workers=1)
    told = [notice.text for notice in ran.heard(Notice) if "rows to come" in notice.text]
    assert told == [
        "the 510 rows to come: about $0.51 and 510,000 tokens, by the first 20; "
        "but their prompts are 18.9 times as long"
    ]
