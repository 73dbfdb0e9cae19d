"""An engine for tests of agents that start agents: a script answers by the prompt of whoever asks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.events import Event, ToolFinished, TurnFinished
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from tests.server.answers import Answer, Seen, call, calls, say
from tests.server.scripted import ScriptedServer

Say = Callable[[Seen], Answer]


def first_user(seen: Seen) -> str:
    """The task of whoever sends this request."""
    return next((str(m["content"]) for m in seen.messages if m["role"] == "user"), "")


def answered(seen: Seen) -> int:
    """How many tool results the sender has had."""
    return sum(message["role"] == "tool" for message in seen.messages)


def by_prompt(answers: Mapping[str, Say | Sequence[Answer] | Answer]) -> Say:
    """A script: the answer by how the sender's first user message begins; of a list the one after its tool results."""

    def script(seen: Seen) -> Answer:
        prompt = first_user(seen)
        for beginning, answer in answers.items():
            if prompt.startswith(beginning):
                if isinstance(answer, Answer):
                    return answer
                if callable(answer):
                    return answer(seen)
                return answer[min(answered(seen), len(answer) - 1)]
        return say(f"done: {prompt}")

    return script


def spawn(*tasks: Any, **fields: Any) -> Answer:
    """A call of spawn_parallel with these tasks (texts or objects)."""
    agents = [{"prompt": task} if isinstance(task, str) else task for task in tasks]
    return call("spawn_parallel", {"agents": agents, **fields})


class Heard:
    """An engine over a scripted server, with what it said."""

    def __init__(
        self, server: ScriptedServer, cwd: Path, *, attended: bool = False, ephemeral: bool = False, **flags: Any
    ) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()
        self.server, self.cwd = server, cwd
        resolved = resolve(Overrides(base_url=server.base_url, model="m", **flags))
        self.on_event: Callable[[Event], None] = self._hear
        self.engine = Engine(resolved, lambda event: self.on_event(event), attended=attended, ephemeral=ephemeral)
        self.engine.start()
        self.session = self.engine.open_session(cwd).id

    def _hear(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def of(self, kind: type[Event]) -> list[Any]:
        """Events of a kind so far."""
        return [event for event in list(self.events) if isinstance(event, kind)]

    def wait(self, condition: Callable[[], Any], seconds: float = 20.0) -> None:
        """Waits until a condition on what was heard holds."""
        with self._changed:
            assert self._changed.wait_for(condition, seconds), [type(e).__name__ for e in self.events][-30:]

    def ask(self, prompt: str, seconds: float = 20.0) -> TurnFinished:
        """Sends a prompt to the chat and waits for its turn's end."""
        self.engine.send(self.session, prompt)
        before = len(self._turns())
        self.wait(lambda: len(self._turns()) > before, seconds)
        self.rest()
        return self._turns()[-1]

    def rest(self) -> None:
        """Waits until the chat takes messages again."""
        end = time.monotonic() + 5
        while self.engine.busy(self.session) and time.monotonic() < end:
            time.sleep(0.005)

    def _turns(self) -> list[TurnFinished]:
        return [event for event in self.of(TurnFinished) if event.session == self.session]

    def results(self) -> dict[str, Any]:
        """The last object a spawn tool of the chat returned."""
        last = [e for e in self.of(ToolFinished) if e.session == self.session and e.name.startswith("spawn_")][-1]
        value: dict[str, Any] = json.loads(last.text)
        return value


__all__ = ["Heard", "answered", "by_prompt", "call", "calls", "first_user", "say", "spawn"]
