"""A reopened chat shows how its calls ended: what was refused is never marked as done."""

from __future__ import annotations

import pytest

from hermes_engine.messages import CANCELLED_RESULT, Message, ToolCall, tool_message, user
from hermes_tui.presenter.history import blocks_of
from hermes_tui.widgets.blocks import ToolBlock


@pytest.mark.parametrize(
    ("text", "saved", "shown"),
    [
        ("the user refused this", "denied", "denied"),
        ("no tool of this name", "error", "error"),
        ("done", "ok", "ok"),
        (CANCELLED_RESULT, "", "cancelled"),
        ("saved before the status was", "", "ok"),
    ],
)
def test_a_saved_call_keeps_its_mark(text: str, saved: str, shown: str) -> None:
    call = ToolCall("c1", "write_file", '{"path": "a.txt"}')
    blocks = blocks_of([user("make it"), Message("assistant", "", (call,)), tool_message(call, text, saved)])
    card = blocks[-1]
    assert isinstance(card, ToolBlock)
    assert [state.status for state in card.calls] == [shown]
