"""The real Atropos server behind a hindrance, for `Trainer`: what groups are sent meets what the file named by
HINDERED says, each line for one request. `late`: it is taken, the answer comes when the file `HINDERED.go` is there.
`fail`: 500 without being taken. `refuse`: 422. `silent`: taken, never answered. Other lines, and none: as ever.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from atroposlib.api.server import app as real

PLAN = Path(os.environ["HINDERED"])
GO = PLAN.with_suffix(".go")
TAKEN = PLAN.with_suffix(".taken")
"""Grows by a byte with each request that is taken."""

_requests = iter(PLAN.read_text().split())


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers a request."""
    if scope["type"] != "http" or scope["path"] != "/scored_data_list":
        await real(scope, receive, send)
        return
    what = next(_requests, "")
    if what in ("fail", "refuse"):
        await send({"type": "http.response.start", "status": 500 if what == "fail" else 422, "headers": []})
        await send({"type": "http.response.body", "body": b'{"detail": "no \x1b[31mroom"}'})
        return

    async def answer(event: Any) -> None:
        if event["type"] == "http.response.start":
            with TAKEN.open("a") as stream:
                stream.write("x")
            while what == "silent" or (what == "late" and not GO.exists()):
                await asyncio.sleep(0.02)
        await send(event)

    await real(scope, receive, answer)
