"""A scripted model that tells the tokens of its replies, as vLLM, SGLang or llama.cpp do: one token a character.

`TokenModel` is a script for `ScriptedServer`: what it says comes from a function, its tokens from the same text that a
chat template makes of the request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.server.answers import Answer, Seen, calls, plain_json, say, status

Server = Literal["vllm", "sglang", "llama.cpp", "silent", "refuses"]
END = "<|im_end|>\n"


@dataclass(frozen=True, slots=True)
class Said:
    """One reply."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()

    @property
    def raw(self) -> str:
        """What the model wrote, to its last token."""
        thought = f"<think>{self.reasoning}</think>" if self.reasoning else ""
        return f"{thought}{self.text}{''.join(_call(name, arguments) for name, arguments in self.calls)}{END}"


@dataclass(slots=True)
class TokenModel:
    """A model.

    Attributes:
        reply: what it says to a request.
        server: how its tokens are told: silent tells none, refuses answers 400 to who asks for them.
        lost: so many tokens of each reply are left out, as servers with a fault did.
        sent: what it read and wrote, request by request.
    """

    reply: Callable[[Seen], Said]
    server: Server = "vllm"
    lost: int = 0
    sent: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Answer:
        wanted = seen.body.get("return_token_ids")
        if wanted and self.server == "refuses":
            return status(400, {"error": {"message": "Unrecognized request argument supplied: return_token_ids"}})
        said, prompt = self.reply(seen), rendered(seen)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(said.raw)}
        if seen.body["stream"]:
            if not said.calls:
                return say(said.text, said.reasoning or None, usage=usage)
            return calls(said.calls, text=said.text, reasoning=said.reasoning or None, usage=usage)
        self.sent.append((prompt, said.raw))
        return plain_json(self._whole(said, prompt, usage, told=bool(wanted)))

    def _whole(self, said: Said, prompt: str, usage: dict[str, int], *, told: bool) -> dict[str, Any]:
        asked = [
            {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for number, (name, arguments) in enumerate(said.calls)
        ]
        message = {"role": "assistant", "content": said.text or None, "reasoning_content": said.reasoning or None}
        choice: dict[str, Any] = {"index": 0, "message": message | ({"tool_calls": asked} if asked else {})}
        choice["finish_reason"] = "tool_calls" if asked else "stop"
        body: dict[str, Any] = {"object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}
        if not told or self.server == "silent":
            return body
        raw = said.raw[: len(said.raw) - self.lost]
        entries = [{"token": letter, "logprob": logprob(place)} for place, letter in enumerate(raw)]
        choice["logprobs"] = {"content": entries}
        if self.server == "llama.cpp":
            for entry in entries:
                entry["id"] = ord(str(entry["token"]))
            return body
        choice["token_ids"] = list(map(ord, raw))
        (body if self.server == "vllm" else choice)["prompt_token_ids"] = list(map(ord, prompt))
        return body


def logprob(place: int) -> float:
    """How likely the token at this place of a reply is."""
    return -0.125 * (1 + place % 7)


def rendered(seen: Seen) -> str:
    """The request as its chat template has it; thoughts are in it where they were sent back."""
    lines = []
    for message in seen.messages:
        text = message.get("content") or ""
        if thought := message.get("reasoning_content"):
            text = f"<think>{thought}</think>{text}"
        for call in message.get("tool_calls", ()):
            text += _call(call["function"]["name"], json.loads(call["function"]["arguments"]))
        lines.append(f"<|im_start|>{message['role']}\n{text}{END}")
    return "".join(lines) + "<|im_start|>assistant\n"


def _call(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
