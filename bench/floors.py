"""The floors: the least code that does the job of a batch, as processes. No records, no limits, no retries.

`python -m bench.floors sdk|bare JOB.json` plays a number of conversations, so many at once, against a server:
each asks, puts the streamed pieces together, runs the commands called for and sends their output back, until the
model calls for none. `sdk` goes through the `openai` package over aiohttp, past its typed responses; `bare` is
aiohttp alone. Both decode each chunk, for no engine gets a tool call without that.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

Body = dict[str, Any]
Lines = Callable[[Body], AsyncIterator[bytes]]
Messages = list[Body]


async def conversation(lines: Lines, template: Body, prompt: str) -> int:
    """One prompt to its end; how many requests it took."""
    messages: Messages = [*template["messages"], {"role": "user", "content": prompt}]
    requests = 0
    while True:
        requests += 1
        text, calls = await _reply(lines({**template, "messages": messages}))
        said: Body = {"role": "assistant", "content": text}
        messages.append(said)
        if not calls:
            return requests
        said["tool_calls"] = calls
        for call in calls:
            output = await _command(json.loads(call["function"]["arguments"])["command"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


async def _reply(lines: AsyncIterator[bytes]) -> tuple[str, Messages]:
    text: list[str] = []
    calls: dict[int, Body] = {}
    async for line in lines:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            if content := delta.get("content"):
                text.append(content)
            for part in delta.get("tool_calls", ()):
                call = calls.setdefault(part["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = part.get("id") or call["id"]
                for name, value in part["function"].items():
                    call["function"][name] += value
    return "".join(text), list(calls.values())


async def _command(command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return output.decode()


async def _all(lines: Lines, job: Body) -> None:
    waiting = iter(range(job["rows"]))
    requests = 0

    async def worker() -> None:
        nonlocal requests
        for number in waiting:
            took = await conversation(lines, job["template"], f"{job['prompt']} {number}")
            requests += took

    await asyncio.gather(*(worker() for _ in range(job["in_flight"])))
    if requests != job["requests"]:
        raise RuntimeError(f"{requests} requests, expected {job['requests']}")


async def sdk(job: Body) -> None:
    """Through the `openai` package: raw lines of `with_streaming_response`."""
    import openai

    limits = openai.DEFAULT_CONNECTION_LIMITS
    limits = type(limits)(max_connections=job["in_flight"], max_keepalive_connections=job["in_flight"])
    client = openai.AsyncOpenAI(
        api_key="none",
        base_url=job["base_url"],
        max_retries=0,
        timeout=60,
        http_client=openai.DefaultAioHttpClient(limits=limits, follow_redirects=False),
    )

    async def lines(body: Body) -> AsyncIterator[bytes]:
        ask = client.chat.completions.with_streaming_response.create
        async with ask(model=body["model"], messages=[], stream=True, extra_body=body) as response:
            async for line in response.iter_lines():
                yield line.encode()

    async with client:
        await _all(lines, job)


async def bare(job: Body) -> None:
    """aiohttp and nothing between."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=job["in_flight"])
    async with aiohttp.ClientSession(connector=connector) as session:

        async def lines(body: Body) -> AsyncIterator[bytes]:
            url = f"{job['base_url']}/chat/completions"
            async with session.post(url, json={**body, "stream": True}) as response:
                async for line in response.content:
                    yield line

        await _all(lines, job)


FLOORS: dict[str, Callable[[Body], Awaitable[None]]] = {"sdk": sdk, "bare": bare}

if __name__ == "__main__":
    asyncio.run(FLOORS[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text())))  # type: ignore[arg-type]
