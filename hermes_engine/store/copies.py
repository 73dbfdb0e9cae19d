"""Copies of a saved conversation, whole or up to a place in it: what a fork and a way back go on with. Blocks."""

from __future__ import annotations

from hermes_engine.errors import UsageError
from hermes_engine.store.sessions import SessionStore


def copied(store: SessionStore, session: str, *, back: int = 0) -> tuple[str, str]:
    """A new chat with what was said in another one, which stays as it is.

    Args:
        store: of both.
        session: which is copied.
        back: how many of the last user messages the copy leaves out, each with all that followed; 0 copies all.

    Returns:
        the new chat's id, and the first message left out ("" when none is).

    Raises:
        StateError: no such session.
        UsageError: nothing was said in it, or not so many messages.
    """
    row, messages = store.row(session), store.load(session)
    said = [place for place, message in enumerate(messages) if message.role == "user"]
    if not said:
        raise UsageError("nothing was said in this chat yet")
    if back > len(said):
        raise UsageError(f"this chat has only {len(said)} of your messages")
    cut = said[-back] if back else len(messages)
    made = store.create_session(cwd=row.cwd, model=row.model, profile=row.profile, mode=row.mode, toolsets=row.toolsets)
    if cut:
        store.append(made, messages[:cut])
    store.set_title(made, _title(store, row.name))
    return made, messages[cut].content if back else ""


def _title(store: SessionStore, name: str) -> str:
    """The name with a number behind it that no chat has."""
    base, _, number = name.rpartition(" (")
    stem = base if base and number.rstrip(")").isdecimal() and number.endswith(")") else name
    taken = {row.title for row in store.list(1000)}
    return next(title for count in range(2, 10_000) if (title := f"{stem[:80]} ({count})") not in taken)
