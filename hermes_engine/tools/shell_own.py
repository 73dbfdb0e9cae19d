"""Calls of this program by its own agents: none may loosen what agents may do, or answer in a person's place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from hermes_engine.tools.shell_danger import Finding, Level, Words

_PROGRAM = "hermes"
_SCRIPT, _MODULES = "batch_runner.py", ("hermes_tui", "hermes_tui.cli")
_TIGHT_MODES = ("ask", "plan")
_SETTING = {
    "config": ("set",),
    "tools": ("enable", "disable"),
    "profile": ("create", "use", "describe", "rename", "delete", "import"),
}
_TAKING_VALUES = ("-p", "--profile", "-m", "--model", "--base-url", "--api-key", "-t", "--toolsets", "--max-turns")


def called(name: str, rest: Words) -> Finding | None:
    """What a call of this program may do beyond an ordinary command; None when it is none, or harmless in that way."""
    texts = [word.text.replace("_", "-") if word.text.startswith("--") else word.text for word in rest]
    if name != _PROGRAM:
        own = next((at for at, text in enumerate(texts) if Path(text).name == _SCRIPT or text in _MODULES), None)
        if own is None or not name.startswith("python"):
            return None
        texts = texts[own + 1 :]
    for first, second in itertools.pairwise([*texts, ""]):
        mode = second if first == "--mode" else first.removeprefix("--mode=")
        if first.startswith("--mode") and mode not in _TIGHT_MODES:
            return Finding(Level.RISKY, "it starts agents in a mode of its own choice")
    verbs = _verbs(texts)
    if len(verbs) > 1 and verbs[1] in _SETTING.get(verbs[0], ()):
        return Finding(Level.RISKY, "it changes what agents of this program may do")
    if verbs[:2] == ["tasks", "answer"]:
        return Finding(Level.RISKY, "it answers in a person's place what an agent asks")
    if verbs[:1] == ["repl"]:
        return Finding(Level.RISKY, "it hands commands to this program")
    return None


def _verbs(texts: Sequence[str]) -> list[str]:
    """The words that are no options, nor values of the options that may stand before them."""
    found: list[str] = []
    skip = False
    for text in texts:
        if skip or text.startswith("-"):
            skip = not skip and text in _TAKING_VALUES
        else:
            found.append(text)
    return found
