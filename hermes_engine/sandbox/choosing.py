"""Which box an agent gets, and which kind a run takes where it may choose. Knows no settings and no rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hermes_engine.errors import UsageError
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.boxed import Boxed
from hermes_engine.sandbox.container import Dock

Kind = Literal["local", "bubblewrap", "container"]
Wish = Literal["auto", "local", "bubblewrap", "container"]


def sandbox_for(wish: Wish) -> tuple[Kind, str]:
    """The kind of sandbox for a wish, and why it is none where the best was wanted. Blocking at the first call.

    Raises:
        UsageError: what is wished for by name does not work here.
    """
    if wish == "local" or wish == "container":
        return wish, ""
    from hermes_engine.sandbox.bubblewrap import why_not  # a trial run, which other runs do without

    reason = why_not()
    if not reason:
        return "bubblewrap", ""
    if wish == "bubblewrap":
        raise UsageError(f"--sandbox bubblewrap: {reason}", hint="with --sandbox local commands run as you")
    return "local", reason


def make_box(confined: Confined, env: Mapping[str, str], dock: Dock) -> Boxed:
    """A box that is not open yet."""
    if confined.kind == "container":
        return dock.box(confined, env)
    from hermes_engine.sandbox.bubblewrap import Bubble

    return Bubble(confined, env)
