"""One table of keys: the document, the overlay and the bindings say the same."""

from __future__ import annotations

from pathlib import Path

from textual.binding import Binding
from textual.dom import DOMNode

from hermes_tui.app import HermesApp
from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.agents.base import AgentsBase
from hermes_tui.screens.agents.letters import AgentTranscript
from hermes_tui.screens.agents.list import AgentList
from hermes_tui.screens.agents.screen import AgentsScreen
from hermes_tui.screens.batch.base import BatchBase
from hermes_tui.screens.batch.run import RunScreen
from hermes_tui.screens.batch.runs import RunsScreen
from hermes_tui.screens.batch.table import Table
from hermes_tui.screens.batch.trace import RowTranscript
from hermes_tui.screens.chat import ChatScreen
from hermes_tui.screens.kanban.base import KanbanBase
from hermes_tui.screens.kanban.card import CardScreen
from hermes_tui.screens.kanban.page import Page
from hermes_tui.screens.kanban.planning import PlanPreview
from hermes_tui.screens.kanban.screen import KanbanScreen
from hermes_tui.screens.kanban.view import BoardView
from hermes_tui.screens.keys import as_markdown, key_rows
from hermes_tui.widgets.prompt.area import Area
from hermes_tui.widgets.sidebar import Sidebar
from hermes_tui.widgets.transcript import Transcript
from tests.tui.stage import screen_text, settle, stage

OWNERS = (
    HermesApp,
    ChatScreen,
    Area,
    Transcript,
    Sidebar,
    AgentsBase,
    AgentsScreen,
    AgentScreen,
    AgentList,
    AgentTranscript,
    BatchBase,
    RunsScreen,
    RunScreen,
    Table,
    RowTranscript,
    KanbanBase,
    KanbanScreen,
    CardScreen,
    BoardView,
    Page,
    PlanPreview,
)
DOCUMENT = Path(__file__).parents[2] / "docs" / "keys.md"


def bound(owner: type[DOMNode]) -> dict[str, Binding]:
    found: dict[str, Binding] = {}
    for binding in owner.__dict__["BINDINGS"]:
        assert isinstance(binding, Binding)
        for key in binding.key.split(","):
            found[key] = binding
    return found


def test_the_document_is_made_from_the_table() -> None:
    assert DOCUMENT.read_text() == as_markdown()


def test_every_key_that_is_bound_is_in_the_table() -> None:
    told = {key for row in key_rows() for key in row.bound}
    for owner in OWNERS:
        missing = {key for key in bound(owner) if key not in told} - {"ctrl+q"}
        assert not missing, owner.__name__


def test_every_key_of_the_table_is_bound() -> None:
    keys = {key for owner in OWNERS for key in bound(owner)}
    told = {key for row in key_rows() for key in row.bound}
    assert told <= keys


def test_bindings_can_be_told_apart_and_explain_themselves() -> None:
    bindings = {id(b): b for owner in OWNERS for b in bound(owner).values()}
    names = [binding.id for binding in bindings.values()]
    assert None not in names
    assert len(names) == len(set(names))
    assert all(binding.description for binding in bindings.values())


def test_actions_of_the_table_exist() -> None:
    for row in key_rows():
        if row.action:
            target, _dot, name = row.action.partition(".")
            owner = {"screen": ChatScreen, "board": KanbanScreen, "batch": RunsScreen}.get(target, HermesApp)
            assert hasattr(owner, f"action_{name.partition('(')[0]}"), row.action


async def test_a_question_mark_on_an_empty_prompt_shows_the_keys_and_runs_one() -> None:
    async with stage(100, 30) as (app, pilot):
        await pilot.press("question_mark")
        await settle(pilot)
        assert "type to narrow" in screen_text(app)
        await pilot.press(*"work sidebar")
        await pilot.press("enter")
        await settle(pilot)
        assert app.chat.sidebar.has_focus
        await pilot.press("escape", *"why", "question_mark")
        assert app.chat.prompt.text == "why?"
