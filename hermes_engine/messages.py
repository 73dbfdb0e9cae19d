"""The values a conversation is made of: messages, tool calls and results, replies, usage. Pure data.

Knows nothing of clients, tools or screens. A conversation is valid when every tool call of an assistant
message has exactly one tool message, in call order, before the next message; `closed` makes it so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
ToolStatus = Literal["ok", "error", "denied", "cancelled"]

INTERRUPTED_RESULT = "[the program ended before this call did; do it again if it is still needed]"
"""The same where the conversation is gone on with by another program."""

CANCELLED_RESULT = "[cancelled before it finished]"
"""Result text given to a call that was cut off, so that the conversation stays valid."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for.

    Attributes:
        id: unique within the conversation; the server's own where it is unique.
        name: tool name as the model wrote it, known or not.
        arguments: JSON text of the arguments exactly as received ("{}" for empty ones). May be unparsable.
    """

    id: str
    name: str
    arguments: str = "{}"

    def parsed(self) -> dict[str, Any] | None:
        """The arguments as an object, or None when they are not a JSON object."""
        try:
            value = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def recorded(self) -> dict[str, Any]:
        """The arguments as an object always: unparsable ones as {"_raw": text}."""
        value = self.parsed()
        return {"_raw": self.arguments} if value is None else value


@dataclass(frozen=True, slots=True)
class ReplyTokens:
    """What a model read and said, as numbers of its server's tokenizer.

    Attributes:
        prompt: what it read, after the first `shared` tokens; empty where the server does not tell it.
        tokens, logprobs: what it said, and how likely each token was; equally many.
        shared: so many tokens are those with which the row's request before, and its reply, began.
    """

    prompt: Sequence[int]
    tokens: Sequence[int]
    logprobs: Sequence[float]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who speaks.
        content: text, "" when there is none (never None).
        tool_calls: calls of an assistant message, in order.
        tool_call_id: which call a tool message answers.
        name: tool name of a tool message.
        reasoning: thinking of an assistant message, without tags.
        partial: the assistant message was cut off (cancelled, broken stream).
        status: how the call of a tool message ended (ok | error | denied | cancelled), "" when not known.
        tokens: of the reply that an assistant message stands for, where they were asked for and told.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""
    partial: bool = False
    status: str = ""
    tokens: ReplyTokens | None = field(default=None, compare=False, repr=False)
    wire: list[bytes] = field(default_factory=list, compare=False, repr=False, init=False)
    """Cache of the encoded form (at most one item), filled by the client, so that a long conversation
    is encoded once and not at each request."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money, additive. Unknown is not zero: the two flags say whether the figures mean anything."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    tokens_known: bool = True
    cost_usd: float = 0.0
    cost_known: bool = True

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.tokens_known and other.tokens_known,
            self.cost_usd + other.cost_usd,
            self.cost_known and other.cost_known,
        )

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion tokens (reasoning tokens are part of the completion)."""
        return self.prompt_tokens + self.completion_tokens

    def as_record(self) -> dict[str, Any]:
        """The `usage` object of a batch record and of `chat --json`: unknown figures are 0 with false beside."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "tokens_known": self.tokens_known,
            "cost_usd": round(self.cost_usd, 8) if self.cost_known else 0.0,
            "cost_known": self.cost_known,
        }


NO_USAGE = Usage()
UNKNOWN_USAGE = Usage(tokens_known=False, cost_known=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer of a model.

    Attributes:
        text: the answer without reasoning and without call mark-up.
        reasoning: thinking, from whatever field or tag, once.
        tool_calls: in order, with ids unique within this reply.
        finish_reason: as the server said, normalised to stop | length | tool_calls | content_filter | "".
        usage: UNKNOWN_USAGE where the server told nothing.
        model: the name the server answered with, or "".
        notes: warnings for the person ("the server seems to have cut the prompt at 4,096 tokens").
        tokens: where they were asked for and the server told all of them.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    usage: Usage = UNKNOWN_USAGE
    model: str = ""
    notes: tuple[str, ...] = ()
    tokens: ReplyTokens | None = field(default=None, compare=False, repr=False)

    @property
    def empty(self) -> bool:
        """Neither words nor calls; reasoning alone is no answer."""
        return not self.text.strip() and not self.tool_calls


@dataclass(frozen=True, slots=True)
class Display:
    """What a person sees of a tool call: small, already cut, plain text (never mark-up).

    Attributes:
        verb: what was done, in a word or two: "Run", "Read", "Edit", "Search", "Fetch".
        title: on what: the command, the path, the pattern.
        summary: the outcome at the right edge: "12 passed", "+14 −6", "exit 3".
        kind: how `body` is to be drawn: text | diff | command | list.
        body: the details, at most a few hundred lines.
    """

    verb: str
    title: str = ""
    summary: str = ""
    kind: Literal["text", "diff", "command", "list"] = "text"
    body: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of one call: text for the model, a display for people."""

    text: str
    status: ToolStatus = "ok"
    display: Display = field(default_factory=lambda: Display("Tool"))
    data: Mapping[str, Any] = field(default_factory=dict)
    """Facts for machines: exit_code, files_changed, … ; JSON values only."""
    usage: Usage = NO_USAGE
    """What the call itself has cost: agents it started."""

    @property
    def ok(self) -> bool:
        """Whether the call did what it was asked."""
        return self.status == "ok"


def user(text: str) -> Message:
    """A user message."""
    return Message("user", text)


def assistant(reply: Reply, *, partial: bool = False) -> Message:
    """The assistant message that stands for a reply."""
    return Message(
        "assistant", reply.text, reply.tool_calls, reasoning=reply.reasoning, partial=partial, tokens=reply.tokens
    )


def tool_message(call: ToolCall, text: str, status: str = "") -> Message:
    """The tool message that answers `call`."""
    return Message("tool", text, tool_call_id=call.id, name=call.name, status=status)


def closed(messages: Iterable[Message], text: str = CANCELLED_RESULT) -> list[Message]:
    """The same conversation made valid: missing results added, stray or doubled ones dropped, order mended.

    Used when a stored conversation is loaded after a crash and when one is cut short.
    """
    source = list(messages)
    out: list[Message] = []
    position = 0
    while position < len(source):
        message = source[position]
        position += 1
        if message.role == "tool":
            continue
        if message.role == "assistant" and not (message.content or message.tool_calls or message.reasoning):
            continue
        out.append(message)
        if not message.tool_calls:
            continue
        results: dict[str, Message] = {}
        while position < len(source) and source[position].role == "tool":
            results.setdefault(source[position].tool_call_id, source[position])
            position += 1
        out.extend(results.get(call.id) or tool_message(call, text, "cancelled") for call in message.tool_calls)
    return out
