"""The app with more at work than a person can start by hand: streaming chats, many agents, or a wide batch.

`python -m bench.loads streams|agents|batch N FILE [argument …]` is `hermes [argument …]`; SIGUSR2 then starts, in the
app's own engine, N further chats each with a turn, or N agents below the chat (and two background tasks for each five
of them from 50 on), or a run of N workers over FILE. All of it is the program's own.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from hermes_engine.session import Engine

_engines: list[Engine] = []


def streams(engine: Engine, count: int) -> None:
    """Opens chats beside the one on the screen and lets each stream an answer."""
    for _ in range(count):
        engine.send(engine.open_session(Path.cwd()).id, "tell all")


def agents(engine: Engine, count: int) -> None:
    """Starts agents as `/spawn` does and, beside many, tasks as `/background` does."""
    chat = next(row.session for row in engine.agents() if row.kind == "chat")
    for number in range(count):
        engine.tasks.start(chat, f"agent number {number} works on its part", kind="child")
    for number in range(count * 2 // 5 if count >= 50 else 0):
        engine.tasks.start(chat, f"task number {number} in the background", kind="background")


def batch(engine: Engine, workers: int, dataset: Path) -> None:
    """Starts a run in the background pool, as `/batch` does."""
    from hermes_engine.batch.options import checked

    engine.start_batch(checked({"run_name": "wide", "dataset_file": dataset, "model": "bench", "num_workers": workers}))


def main() -> None:
    """Reads the command line and becomes the app."""
    kind, count, dataset = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    start = Engine.start

    def started(engine: Engine) -> None:
        _engines.append(engine)
        start(engine)

    def work() -> None:
        if kind == "streams":
            streams(_engines[0], count)
        elif kind == "agents":
            agents(_engines[0], count)
        else:
            batch(_engines[0], count, dataset)

    setattr(Engine, start.__name__, started)
    signal.signal(signal.SIGUSR2, lambda *_: threading.Thread(target=work, daemon=True).start())
    sys.argv = ["hermes", *sys.argv[4:]]
    from hermes_tui.cli import main as hermes

    hermes()


if __name__ == "__main__":
    main()
