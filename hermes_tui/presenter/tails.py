"""The last words of every agent but the chat's own: what it wrote and which tools it called, for the peek pane."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes_engine.events import Event, TextDelta, ToolFinished, ToolStarted, TurnStarted
from hermes_tui.widgets.facts import TailFact

LONGEST = 2_000
"""Characters kept of one piece of text."""

MOST = 40
"""Pieces kept of one agent."""


@dataclass(slots=True)
class _Tail:
    version: int = 0
    pieces: list[TailFact] = field(default_factory=list)
    writing: bool = False

    def add(self, kind: str, text: str, call: str = "") -> None:
        self.pieces.append(TailFact(kind, text[-LONGEST:], call))
        del self.pieces[:-MOST]


class Tails:
    """The tails, by agent. `last` is the agent that did something last."""

    def __init__(self) -> None:
        self.last = ""
        self._tails: dict[str, _Tail] = {}

    def of(self, agent: str) -> tuple[int, tuple[TailFact, ...]]:
        """An agent's tail, with a number that grows with each change."""
        tail = self._tails.get(agent)
        return (tail.version, tuple(tail.pieces)) if tail is not None else (0, ())

    def forget(self, agent: str) -> None:
        """The agent is shown no more."""
        self._tails.pop(agent, None)

    def take(self, event: Event) -> None:
        """Takes one event of an agent in."""
        if not isinstance(event, (TurnStarted, TextDelta, ToolStarted, ToolFinished)):
            return
        tail = self._tails.setdefault(event.agent, _Tail())
        tail.version += 1
        self.last = event.agent
        match event:
            case TextDelta(text=text):
                if tail.writing and tail.pieces:
                    text = tail.pieces.pop().text + text
                tail.add("text", text)
            case TurnStarted(prompt=prompt) if prompt:
                tail.add("prompt", prompt)
            case ToolStarted(display=display, call_id=call):
                tail.add("tool", f"{display.verb} {display.title}", call)
            case ToolFinished(display=display, call_id=call, status=status):
                tail.pieces = [piece for piece in tail.pieces if piece.call != call]
                kind = "tool" if status == "ok" else "fault"
                tail.add(kind, f"{display.verb} {display.title}  {display.summary}".rstrip(), call)
            case _:
                pass
        tail.writing = isinstance(event, TextDelta)
