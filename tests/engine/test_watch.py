"""A loop that is held up is named in the log, with what holds it."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes_engine.session.watch import LoopWatch


def block_for_a_while() -> None:
    time.sleep(0.3)


async def test_what_holds_the_loop_up_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch("a test", lag=0.05, every=0.02)
    await asyncio.sleep(0.1)
    assert caplog.records == []
    block_for_a_while()
    await asyncio.sleep(0.05)
    watch.close()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1
    assert "block_for_a_while" in lines[0]
