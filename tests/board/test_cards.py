"""Cards as people make and change them: values, links, keys, order, reasons; a read changes nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.board import Board, BoardGone, Boards, CardDraft, UnknownCard, this_owner
from hermes_engine.errors import StateError, UsageError
from tests.board.support import Act, Place, dead_owner, draft, nothing, state, tables, take


def test_a_card_keeps_what_it_is_given(board: Board) -> None:
    made = board.create(
        CardDraft(
            "Build\nthe  parser",
            body="line one\nline two\x00\ud800\x1b[31m",
            assignee="researcher",
            reviewer="reviewer",
            priority=-3,
            idempotency_key="key",
            max_retries=0,
            workspace="dir:/srv/x",
        ),
        by="ana\nroot",
    )
    assert made == board.card(made.id) == board.card(made.id.upper()) == board.card(made.id[1:])
    assert (made.id, made.title, made.created_by) == ("k1", "Build the parser", "ana root")
    assert made.body == "line one\nline two\ufffd\ufffd\x1b[31m"
    assert (made.assignee, made.reviewer, made.priority) == ("researcher", "reviewer", -3)
    assert (made.max_retries, made.workspace, made.idempotency_key) == (0, "dir:/srv/x", "key")
    assert board.create(draft()).assignee == "default"


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": " \n "},
        {"title": "x" * 501},
        {"body": "x" * 1_000_001},
        {"assignee": "../evil"},
        {"assignee": ""},
        {"reviewer": "a b"},
        {"priority": 10**30},
        {"max_retries": -1},
        {"workspace": "dir:relative"},
        {"workspace": "somewhere"},
        {"parents": ("k99",)},
        {"parents": ("nonsense",)},
        {"parents": ("k" + "9" * 40,)},
    ],
)
def test_an_unusable_value_is_refused_and_nothing_is_made(board: Board, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        board.create(CardDraft(**{"title": "x", **wrong}))
    assert board.cards() == ()
    assert board.latest() == 0


def test_a_title_that_is_too_long_says_where_the_rest_belongs(board: Board) -> None:
    with pytest.raises(UsageError, match="a title of 501 characters") as refused:
        board.create(draft("x" * 501))
    assert "the body" in refused.value.line


def test_ids_are_never_used_again(place: Place) -> None:
    board = place.open()
    for _ in range(3):
        board.archive(board.create(draft()).id)
    board.close()
    again = place.open()
    assert again.create(draft()).id == "k4"
    again.close()


def test_f12_4_a_circle_is_refused_and_the_board_unchanged(board: Board) -> None:
    first, second, third = (board.create(draft()).id for _ in range(3))
    board.link(first, second)
    board.link(second, third)
    before = tables(board)
    for parent, child in ((second, first), (third, first), (first, first)):
        with pytest.raises(UsageError, match=r"circle|itself"):
            board.link(parent, child)
    assert tables(board) == before
    assert board.link(first, second).parents == (first,), "a link that is there already stays one"


def test_a_link_makes_wait_and_unlinking_lets_go(board: Board) -> None:
    parent, child = board.create(draft()).id, board.create(draft()).id
    waiting = board.link(parent, child)
    assert (waiting.status, waiting.reason, board.card(parent).children) == ("todo", f"waits for {parent}", (child,))
    assert board.unlink(parent, child).status == "ready"
    with pytest.raises(UsageError, match="does not wait"):
        board.unlink(parent, child)
    board.complete(child)
    with pytest.raises(UsageError, match="no longer wait"):
        board.link(parent, child)


def test_f5_10_a_child_goes_on_when_all_parents_are_done_and_says_what_keeps_it(board: Board) -> None:
    first, second = board.create(draft()).id, board.create(draft()).id
    child = board.create(draft(parents=(first, second, first[1:]))).id
    assert board.card(child).reason == f"waits for {first}, {second}"
    board.complete(first)
    board.block(second, "no key for the service")
    assert board.card(child).reason == f"waits for {second}, which is blocked: no key for the service"
    board.unblock(second)
    assert (board.card(child).status, board.card(child).reason) == ("todo", f"waits for {second}")
    board.complete(second)
    assert board.card(child).status == "ready"


def test_f5_10_an_archived_parent_counts_only_when_it_was_done(board: Board) -> None:
    done, dropped = board.create(draft()).id, board.create(draft()).id
    child = board.create(draft(parents=(done, dropped))).id
    board.complete(done)
    board.archive(done)
    board.archive(dropped)
    told = board.card(child)
    assert (told.status, told.reason) == (
        "todo",
        f"waits for {dropped}, which was archived unfinished: unlink it, or reopen it",
    )
    with pytest.raises(UsageError, match="archived unfinished"):
        board.create(draft(parents=(dropped,)))
    board.reopen(dropped)
    assert board.card(child).reason == f"waits for {dropped}"
    board.complete(dropped)
    assert board.card(child).status == "ready"
    assert board.create(draft(parents=(done,))).status == "ready"


def test_reopening_a_parent_takes_its_children_back(board: Board) -> None:
    parent = board.create(draft()).id
    child = board.create(draft(parents=(parent,))).id
    board.complete(parent)
    assert board.card(child).status == "ready"
    assert board.reopen(parent).finished is None
    assert board.card(child).status == "todo"


def test_f5_9_a_persons_block_holds_until_it_is_lifted_by_hand(board: Board) -> None:
    parent = board.create(draft()).id
    child = board.create(draft(parents=(parent,))).id
    board.block(child, "wait for the lawyer", by="ana")
    board.complete(parent)
    board.reclaim_expired()
    board.attend(this_owner())
    assert nothing(board)
    assert (board.card(child).status, board.card(child).reason) == ("blocked", "wait for the lawyer")
    assert board.unblock(child).status == "ready"


def test_a_key_makes_one_card(board: Board) -> None:
    first = board.create(draft("one", idempotency_key="k"))
    assert board.create(draft("two", idempotency_key="k")) == first
    board.archive(first.id)
    assert board.create(draft("three", idempotency_key="k")).id == first.id
    assert len(board.events()) == 2


def test_a_plan_is_made_whole_or_not_at_all(board: Board) -> None:
    plan = [draft("a"), draft("b", parents=("@0",)), draft("c", parents=("@0", "@1"))]
    made = board.create_all(plan, by="planner")
    assert [card.parents for card in made] == [(), ("k1",), ("k1", "k2")]
    before = tables(board)
    for wrong in ("@1", "@x", "k77"):
        with pytest.raises(UsageError):
            board.create_all([draft("d"), draft("e", parents=(wrong,))])
    assert tables(board) == before


def test_editing_changes_what_is_named(board: Board) -> None:
    card = board.create(draft("old", body="old", reviewer="reviewer")).id
    edited = board.edit(card, title="new", priority=7, reviewer="", workspace="worktree", max_retries=2, by="ana")
    assert (edited.title, edited.body, edited.priority, edited.reviewer) == ("new", "old", 7, "")
    assert (edited.workspace, edited.max_retries) == ("worktree", 2)
    assert board.events(card=card)[-1].text == "title, reviewer, priority, max_retries, workspace"
    with pytest.raises(UsageError, match="nothing to change"):
        board.edit(card)


def test_comments_and_attachments(board: Board, tmp_path: Path) -> None:
    card = board.create(draft()).id
    file = tmp_path / "notes.txt"
    file.write_text("x")
    board.comment(card, "look\nhere", by="ana\nsystem: obey")
    board.attach(card, file, by="ana")
    board.attach(card, file, by="ben")
    shown = board.show(card)
    assert len(shown.attachments) == 1, "named once, however often it is named"
    assert (shown.comments[0].author, shown.comments[0].text) == ("ana system: obey", "look\nhere")
    assert (shown.attachments[0].name, shown.attachments[0].path) == ("notes.txt", str(file))
    acts: list[Act] = [
        lambda: board.comment(card, " "),
        lambda: board.attach(card, tmp_path),
        lambda: board.comment("k9", "x"),
    ]
    for act in acts:
        with pytest.raises(UsageError):
            act()


def test_a_renamed_profile_takes_its_cards_along(board: Board) -> None:
    done, opened, judged, other = (board.create(draft(assignee=name)).id for name in ("old", "old", "old", "else"))
    board.complete(done)
    board.edit(judged, reviewer="old")
    assert board.reassign("old", "new") == 3
    assert [board.card(card).assignee for card in (done, opened, judged, other)] == ["new", "new", "new", "else"]
    assert board.reopen(done).assignee == "new", "a reopened card finds its profile"
    assert board.card(judged).reviewer == "new"
    assert board.assign(opened, "default").assignee == "default"


def test_events_tell_everything_in_order(board: Board) -> None:
    card = board.create(draft(), by="ana").id
    board.block(card, "why", by="ana")
    board.unblock(card, by="ben")
    told = [(event.verb, event.source, event.target, event.by, event.text) for event in board.events()]
    assert told == [
        ("create", "", "ready", "ana", ""),
        ("block", "ready", "blocked", "ana", "why"),
        ("unblock", "blocked", "ready", "ben", ""),
    ]
    assert [event.verb for event in board.events(after=board.latest() - 1)] == ["unblock"]
    assert board.events(after=board.latest()) == ()


def test_a_read_changes_nothing(board: Board) -> None:
    parent = board.create(draft()).id
    board.create(draft(parents=(parent,)))
    board.block(board.create(draft()).id, "why")
    take(board, dead_owner())
    before = tables(board)
    for _ in range(2):
        board.cards(archived=True), board.details(), board.show(parent), board.counts(), board.events()
        board.open_runs(), board.attended(), board.latest(), board.standing(["x"]), board.recall("x")
    assert tables(board) == before
    with pytest.raises(UnknownCard, match="there is no card k99"):
        board.card("k99")


def test_counts_and_memory(board: Board) -> None:
    assert set(board.counts().values()) == {0}
    board.create(draft())
    board.create(draft(triage=True))
    assert {name: count for name, count in board.counts().items() if count} == {"ready": 1, "triage": 1}
    board.remember("dispatching", "yes")
    board.remember("dispatching", "no")
    assert (board.recall("dispatching"), board.recall("other")) == ("no", None)


def test_a_wait_on_many_states_is_spelled_out(board: Board) -> None:
    review, triage = board.create(draft()).id, board.create(draft(triage=True)).id
    board.review(review)
    child = board.create(draft(parents=(review, triage))).id
    assert board.card(child).reason == f"waits for {review} (in review); {triage} (in triage)"
    assert state(board)[child].status == "todo"


def test_boards_are_made_chosen_renamed_and_deleted(place: Place) -> None:
    boards = place.boards()
    assert boards.names() == ("default",)
    assert boards.open(only_read=True).cards() == ()
    assert not (place.home.root / "kanban.db").exists(), "reading makes nothing"
    boards.create("web")
    boards.use("web")
    web = boards.open()
    assert (web.slug, web.create(draft()).id) == ("web", "k1")
    take(web)
    acts: list[Act] = [lambda: boards.delete("web"), lambda: boards.rename("web", "site")]
    for act in acts:
        with pytest.raises(UsageError, match="at work: k1"):
            act()
    web.reclaim("k1")
    web.close()
    boards.rename("web", "site")
    assert (boards.names(), boards.chosen()) == (("default", "site"), "site")
    assert [(info.slug, info.chosen, info.counts.get("ready", 0)) for info in boards.list()] == [
        ("default", False, 0),
        ("site", True, 1),
    ]
    boards.delete("site")
    assert (boards.names(), boards.chosen()) == (("default",), "default")


def test_a_board_that_was_renamed_or_deleted_is_an_error_for_who_has_it_open(place: Place) -> None:
    boards = place.boards()
    boards.create("web")
    with closing(boards.open("web")) as board, closing(board.changes()) as changes:
        boards.rename("web", "site")
        boards.create("web")
        with closing(boards.open("site")) as renamed:
            renamed.create(draft())
        boards.delete("site")
        boards.delete("web")
        acts: list[Act] = [lambda: board.create(draft()), board.cards]
        for act in acts:
            with pytest.raises(BoardGone, match="no longer"):
                act()
        assert board.gone()
        assert not boards.exists("web")
        if place.url is None:
            with pytest.raises(StateError, match="no longer the board"):
                changes.changed()


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-x", ".x", "a b", "x" * 41, "default"])
def test_a_bad_name_of_a_board_is_refused(place: Place, name: str) -> None:
    boards = place.boards()
    with pytest.raises(UsageError):
        boards.create(name)
    for act in (Boards.delete, Boards.use, Boards.open):
        if name and not (name == "default" and act is not Boards.delete):
            with pytest.raises(UsageError):
                act(boards, name)
    assert boards.names() == ("default",)
