"""The embedded model `demo`: scripted, without a network, openly labelled. It streams, reasons, calls the tools on
offer and answers from their real results, so that every screen can be seen offline.

The same seed and conversation give the same reply. What it says is chosen in `demo_scenes`; here it is spoken.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator

from hermes_engine.clients.assemble import CUT_CALLS_NOTE
from hermes_engine.clients.demo_scenes import Step, next_step
from hermes_engine.clients.prices import Price
from hermes_engine.clients.text_repair import whole_text
from hermes_engine.errors import ContextTooLong
from hermes_engine.messages import Reply, ToolCall, Usage
from hermes_engine.protocols import DeltaSink, ModelRequest

WINDOW = 32768
WORDS_A_SECOND = 90.0
FIRST_PAUSE_SECONDS = 0.2
_WORD = re.compile(r"\s*\S+\s*|\s+")
_WORDS_A_PIECE = 3


class DemoClient:
    """Implements `protocols.Client`; many requests may be open at once."""

    def __init__(self, seed: int = 0, *, paced: bool = True) -> None:
        """Args:
        seed: chooses among the ways to go on.
        paced: whether it speaks at the speed of a real model; batch runs do without.
        """
        self._seed = seed
        self._paced = paced

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`.

        Raises:
            ContextTooLong: the conversation has more words than the model can hold.
            ProviderError: a prompt asked for an error ("demo: error").
        """
        prompt_tokens = sum(_count(message.content) for message in request.messages)
        if prompt_tokens > WINDOW:
            raise ContextTooLong(f"the demo model holds {WINDOW:,} words, the conversation has {prompt_tokens:,}")
        if self._paced:
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
        step = next_step(request, self._seed)
        reasoning = "" if request.reasoning_effort == "none" else whole_text(step.reasoning)
        await self._speak(reasoning, on_delta, thought=True)
        text, cut = _limited(whole_text(step.text), request.sampling.get("max_tokens"))
        await self._speak(text, on_delta, thought=False)
        calls = () if cut else _calls(step, request)
        spoken = sum(_count(call.arguments) for call in calls) + _count(text)
        return Reply(
            text=text,
            reasoning=reasoning,
            tool_calls=calls,
            finish_reason="length" if cut else "tool_calls" if calls else "stop",
            usage=Usage(prompt_tokens, spoken + _count(reasoning), _count(reasoning)),
            model="demo",
            notes=(CUT_CALLS_NOTE,) if cut and step.calls else (),
        )

    async def context_window(self, model: str) -> int | None:
        """A fixed size, counted in words."""
        return WINDOW

    async def price(self, model: str) -> Price | None:
        """It costs nothing."""
        return Price(0.0, 0.0)

    async def close(self) -> None:
        """There is nothing to close."""

    async def _speak(self, text: str, on_delta: DeltaSink | None, *, thought: bool) -> None:
        for piece in _pieces(text):
            if on_delta is not None and thought:
                on_delta(reasoning=piece)
            elif on_delta is not None:
                on_delta(text=piece)
            await asyncio.sleep(_WORDS_A_PIECE / WORDS_A_SECOND if self._paced else 0)


def _pieces(text: str) -> Iterator[str]:
    words = _WORD.findall(text)
    for start in range(0, len(words), _WORDS_A_PIECE):
        yield "".join(words[start : start + _WORDS_A_PIECE])


def _count(text: str) -> int:
    """Words; a text without blanks counts by length, as a real model's tokens would."""
    return max(text.count(" ") + text.count("\n") + 1, len(text) // 12) if text else 0


def _limited(text: str, limit: object) -> tuple[str, bool]:
    if not isinstance(limit, int) or limit <= 0:
        return text, False
    words = _WORD.findall(text)
    return ("".join(words[:limit]), True) if len(words) > limit else (text, False)


def _calls(step: Step, request: ModelRequest) -> tuple[ToolCall, ...]:
    before = sum(len(message.tool_calls) for message in request.messages)
    return tuple(
        ToolCall(f"demo{before + place:05d}", name, json.dumps(arguments, ensure_ascii=False))
        for place, (name, arguments) in enumerate(step.calls, start=1)
    )
