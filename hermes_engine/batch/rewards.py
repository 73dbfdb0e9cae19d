"""Scores of rows by a function of the person's own: finds it, calls it, takes nothing but a finite number from it."""

from __future__ import annotations

import copy
import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

from hermes_engine.batch.job import Record
from hermes_engine.cleaning import one_line
from hermes_engine.errors import UsageError

Reward = Callable[[Record], float]
"""Takes a record of `trajectories.jsonl`."""

_SHOWN = 200


class NoScore(Exception):
    """A row got no score; `str()` says why in one line."""


def load_reward(name: str) -> Reward:
    """The function `module:function`; the module stands in the current folder or is installed.

    Raises:
        UsageError: there is no such module or function, or the module cannot be loaded.
    """
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name.isidentifier()):
        raise UsageError(f"--reward: {name} is not module:function", hint="examples.rewards:exact_answer")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise UsageError(
                f"--reward: there is no module {error.name} in this folder, nor an installed one"
            ) from None
        raise UsageError(f"--reward: {module_name} cannot be loaded: {_said(error)}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"--reward: {module_name} cannot be loaded: {_said(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(f"--reward: {module_name} has no function {function_name}")
    found: Reward = function
    return found


def scored(reward: Reward | None, record: Record) -> float:
    """The score of a row; without a reward 1.0 when it is completed, else 0.0.

    Raises:
        NoScore: the function failed, or gave something else than a finite number.
    """
    if reward is None:
        return 1.0 if record.get("completed") else 0.0
    try:
        given = reward(copy.deepcopy(record))
    except (Exception, SystemExit) as error:
        raise NoScore(_said(error)) from error
    score = _number(given)
    if not math.isfinite(score):
        raise NoScore(f"the reward gave {one_line(repr(given), _SHOWN)}, no finite number")
    return score


def _number(given: object) -> float:
    """What a function gave as a number, those of numpy and torch among them; NaN when it is none."""
    try:
        return float(given) if isinstance(given, SupportsFloat) else math.nan
    except Exception:
        return math.nan


def _said(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", _SHOWN)
