"""The last two steps of every running turn, as the app has heard them: what the saved messages do not have yet. Knows
events; no screen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hermes_engine.events import Event, ReplyFinished, StepStarted, ToolFinished, ToolStarted, TurnFinished, TurnStarted
from hermes_engine.messages import Message


class OpenSteps:
    """By session. A turn that has ended has none."""

    def __init__(self) -> None:
        self._steps: dict[str, list[list[Event]]] = {}

    def take(self, event: Event) -> None:
        """Takes one event in."""
        if not event.run:
            return
        if isinstance(event, TurnFinished):
            self._steps.pop(event.session, None)
        elif isinstance(event, TurnStarted):
            self._steps[event.session] = [[event]]
        elif event.session in self._steps:
            steps = self._steps[event.session]
            if isinstance(event, StepStarted):
                self._steps[event.session] = steps = [*steps[-1:], []]
            steps[-1].append(event)

    def of(self, session: str) -> list[Event] | None:
        """The events of the last two steps, None where no turn runs."""
        steps = self._steps.get(session)
        return None if steps is None else [event for step in steps for event in step]


def left_of(
    events: Sequence[Event], messages: Sequence[Message], begun: Collection[str], ended: Collection[str]
) -> list[Event]:
    """Those of a running turn's events that its saved messages do not tell of.

    Args:
        events: of the turn, or of its last steps.
        messages: the conversation.
        begun: calls that are shown already.
        ended: calls whose results are shown.
    """
    last = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "assistant"), -1)
    said = {message.content for message in messages[last + 1 :] if message.role == "user"}
    start = 0
    for place, event in enumerate(events):
        match event:
            case TurnStarted(prompt=prompt) if prompt in said or not prompt:
                start = place + 1
            case ReplyFinished() if last >= 0 and _same(event, messages[last]):
                start = place + 1

    def news(event: Event) -> bool:
        match event:
            case ToolStarted(call_id=call):
                return call not in begun
            case ToolFinished(call_id=call):
                return call not in ended
        return True

    return [event for event in events[start:] if news(event)]


def _same(event: ReplyFinished, message: Message) -> bool:
    return (event.text, event.calls, event.reasoning) == (message.content, len(message.tool_calls), message.reasoning)
