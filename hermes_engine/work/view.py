"""What a front end sees of a chat: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hermes_engine.messages import NO_USAGE, Message, Usage


@dataclass(frozen=True, slots=True)
class SessionView:
    """A chat at one moment.

    Attributes:
        id: of the session.
        agent: id of its agent in the tree.
        mode: ask | edits | plan | auto | yolo.
        messages: the conversation without the system message.
        usage: of this session since it was opened here.
        context_tokens: tokens the conversation takes, 0 before the first reply.
        context_window: tokens the model can hold, 0 when unknown.
        estimated: whether `context_tokens` is our own estimate.
        busy: a turn is running.
    """

    id: str
    agent: str
    title: str
    cwd: Path
    model: str
    profile: str
    mode: str
    toolsets: tuple[str, ...]
    messages: tuple[Message, ...]
    usage: Usage = NO_USAGE
    context_tokens: int = 0
    context_window: int = 0
    estimated: bool = False
    busy: bool = False
