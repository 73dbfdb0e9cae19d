"""A model server that fails one call in five, in nine ways, as `bench.chaos` has drawn them.

`python -m bench.chaos_server '{"latency": 0.02}'` serves as `bench.server` does. It remembers which calls it let fail
once, also when their client was killed meanwhile, and counts by way what it did.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from functools import cache
from typing import Any

from bench import chaos
from bench.answers import THOUGHT, Call, Script, chunks, events, packed, words
from bench.server import Connection, serve

_CALLS = {
    "echo": Call("terminal", json.dumps({"command": "echo part-0"})),
    "truncated arguments": Call("terminal", '{"command": "echo par'),
    "invented tool": Call("summon_spirit", json.dumps({"name": "Hermes"})),
}
_STATUS = {
    "429 with Retry-After": (b"429 Too Many Requests", b"Retry-After: 0.1\r\n"),
    "429 without": (b"429 Too Many Requests", b""),
    "500": (b"500 Internal Server Error", b""),
}
_ERROR = {"error": {"message": "the bench's server fails on purpose", "type": "server_error"}}
_LONG = 3600.0
_tries: Counter[tuple[str, int]] = Counter()


class Failing(Connection):
    """Answers a conversation by its first prompt and its number of answers so far."""

    def answer(self, body: bytes) -> None:
        """Answers a request, or not."""
        self.begin(body)
        prompt, step = _asked(body)
        wrong = chaos.way(prompt, step)
        if wrong in chaos.ERROR_KINDS:
            _tries[prompt, step] += 1
            if _tries[prompt, step] == 1 or chaos.lasting(prompt, step):
                self._counts.ways[wrong] += 1
                self._fail(wrong, prompt, step)
                return
            wrong = ""
        silent = chaos.silent(prompt)
        self._counts.ways[wrong or ("no reasoning" if silent else "well")] += 1
        self.stream(_reply(self._script, step, chaos.called(prompt, step), silent))

    def _fail(self, wrong: chaos.Way, prompt: str, step: int) -> None:
        late = chaos.late(prompt, step)
        begun = _begun(self._script)
        if wrong in _STATUS:
            status, headers = _STATUS[wrong]
            if headers and chaos.long(prompt, step):
                headers = b"Retry-After: 1\r\n"
            self.later(lambda: self.plain(json.dumps(_ERROR).encode(), status, headers))
        elif wrong == "error in stream":
            self.stream([begun, *packed(events([_ERROR]), 1)])
        elif wrong == "hang":
            if late:
                self.write_head(begun)
            self.later(lambda: None, _LONG)
        elif late:
            self.write_head(begun)
            self.later(self.cut, self._script.gap)
        else:
            self.later(self.cut)


def _asked(body: bytes) -> tuple[str, int]:
    """The conversation's first prompt, and how many answers it has."""
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    prompt = next(message["content"] for message in messages if message["role"] == "user")
    return prompt, sum(message["role"] == "assistant" for message in messages)


@cache
def _reply(script: Script, step: int, called: str, silent: bool) -> list[bytes]:
    told = chunks(words(script.chunks), _CALLS.get(called), step, "" if silent else THOUGHT)
    return packed([*events(told), b"data: [DONE]\n\n"], script.per_packet)


@cache
def _begun(script: Script) -> bytes:
    """The beginning of a reply, as one packet."""
    told = events(chunks(words(script.chunks), None, 0))
    return packed(told[: script.chunks], script.chunks)[0]


if __name__ == "__main__":
    asyncio.run(serve(Script(**json.loads(sys.argv[1])), Failing))
