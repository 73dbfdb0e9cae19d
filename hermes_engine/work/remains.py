"""What a dead worker left running, when a person takes its card: nobody else may be there to end it."""

from __future__ import annotations

import time

from hermes_engine.board import Board, Run, lives
from hermes_engine.sandbox.orphans import end_left_by
from hermes_engine.store.instances import this_boot


def cleared(run: Run) -> bool | None:
    """Whether a run's owner lives, as `lives` has it; what a dead one's commands left running is ended first, or the
    owner counts as living. Blocking, under a second."""
    owner = run.owner
    verdict = lives(owner, time.time() - run.heartbeat)
    if verdict is False and owner.boot == this_boot() and not end_left_by(owner.pid, owner.birth):
        return True
    return verdict


def end_remains(board: Board, card: str) -> None:
    """Ends what the newest run of a card left running, where that run was stopped and its process is gone. Blocking."""
    runs = board.runs(card)
    if runs and runs[-1].state == "stopped":
        cleared(runs[-1])
