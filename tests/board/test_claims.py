"""Claims, leases, fences and tries: what dispatchers and workers do with cards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_engine.board import Board, Hold, IllegalMove, Run, RunOver, lives, this_owner
from hermes_engine.errors import UsageError
from tests.board.support import Open, dead_owner, draft, foreign_owner, nothing, shift, tables, take


def test_the_highest_priority_then_the_oldest_is_claimed(board: Board) -> None:
    for number in (1, 5, 5, 9):
        board.create(draft(priority=number, parents=("k1",) if number == 9 else ()))
    assert [take(board)[0].card.id for _ in range(3)] == ["k2", "k3", "k1"]
    assert nothing(board), "k4 waits for its parent"


def test_only_cards_of_profiles_that_are_here_and_below_the_cap(open_board: Open) -> None:
    board = open_board(max_workers=2)
    board.create(draft(assignee="elsewhere"))
    for _ in range(3):
        board.create(draft(assignee="researcher"))
    assert nothing(board, profiles=set())
    assert nothing(board, profiles={"default"})
    assert nothing(board, cap=0)
    take(board)
    take(board)
    assert nothing(board), "two of two are at work"
    assert take(board, cap=3)[0].card.id == "k4"


def test_a_claim_opens_a_run_with_its_owner(board: Board) -> None:
    board.create(draft(assignee="researcher"))
    me = this_owner()
    claim, hold = take(board, me)
    assert (claim.card.status, claim.card.reason, claim.card.run) == ("running", "", claim.run)
    assert (claim.run.owner, claim.run.profile, claim.run.role, claim.run.state) == (
        me,
        "researcher",
        "work",
        "running",
    )
    assert claim.lease == board.rules.claim_ttl_seconds
    assert claim.run.expires == pytest.approx(claim.run.started + claim.lease)
    assert hold.check() == claim.run
    assert claim.token not in repr(board.show("k1"))


def test_a_named_card_is_claimed_by_whoever_works_it(board: Board) -> None:
    board.create(draft(assignee="elsewhere"))
    claim = board.claim_card("k1", this_owner(), profile="ana")
    assert (claim.card.status, claim.run.profile) == ("running", "ana")
    with pytest.raises(IllegalMove, match="k1 is running"):
        board.claim_card("k1", this_owner())


def test_a_worker_tells_what_it_does_and_where(board: Board) -> None:
    board.create(draft())
    _, hold = take(board)
    shift(board, 100)
    assert hold.heartbeat(activity="Run pytest\n-q", tokens=1200) == board.rules.claim_ttl_seconds
    hold.record(session="s1", workspace="/tmp/w", commit="abc")
    other = replace(this_owner(), pid=77)
    hold.adopt(other)
    run = hold.check()
    assert (run.activity, run.tokens, run.session, run.workspace, run.commit) == (
        "Run pytest -q",
        1200,
        "s1",
        "/tmp/w",
        "abc",
    )
    assert run.owner == other
    assert run.heartbeat - run.started > 90


def test_f5_5_an_old_run_cannot_write_into_the_new_one(board: Board) -> None:
    board.create(draft())
    old, first = take(board)
    board.reclaim("k1")
    _, second = take(board)
    before = tables(board)
    for act in (
        lambda: first.complete("mine"),
        lambda: first.block("mine"),
        lambda: first.comment("mine"),
        lambda: first.heartbeat(),
        lambda: first.record(session="x"),
        lambda: first.adopt(this_owner()),
        lambda: first.request_review("mine"),
        lambda: first.create(draft("mine")),
        lambda: first.link("k1", "k1"),
        lambda: first.end("failed", "mine"),
        lambda: first.check(),
        lambda: first.card(),
        lambda: Hold(board, "nonsense").complete("mine"),
    ):
        with pytest.raises(RunOver, match=r"is over \(stopped: reclaimed|no run with this token"):
            act()
    assert tables(board) == before
    assert board.standing([old.token, second._token]) == {second._token}
    assert second.complete("theirs").result == "theirs"


@pytest.mark.parametrize("verb", ["archive", "block", "complete", "review", "reclaim"])
def test_f5_8_a_card_that_is_moved_while_it_runs_takes_its_worker_the_word(board: Board, verb: str) -> None:
    board.create(draft())
    _, hold = take(board)
    moved = {
        "archive": lambda: board.archive("k1", by="ana"),
        "block": lambda: board.block("k1", "stop", by="ana"),
        "complete": lambda: board.complete("k1", "by hand", by="ana"),
        "review": lambda: board.review("k1", by="ana"),
        "reclaim": lambda: board.reclaim("k1", by="ana"),
    }[verb]()
    with pytest.raises(RunOver, match="by ana"):
        hold.check()
    with pytest.raises(RunOver):
        hold.complete("too late")
    assert (board.runs("k1")[0].state, board.card("k1")) == ("stopped", moved)


def test_f5_14_created_ids_must_be_the_workers_own(board: Board) -> None:
    board.create(draft("root", assignee="researcher"))
    board.create(draft("foreign", assignee="nobody"))
    _, hold = take(board)
    mine = hold.create(draft("child", parents=("k1",)))
    assert (mine.assignee, mine.created_by, mine.status) == ("researcher", "researcher", "todo"), "5.16"
    assert hold.create(draft("other", assignee="default")).assignee == "default"
    before = tables(board)
    with pytest.raises(UsageError, match="9999, k2, nonsense"):
        hold.complete("done", created=["9999", mine.id, "k2", "nonsense"])
    assert tables(board) == before
    assert hold.complete("done", created=[mine.id]).status == "done"
    assert board.card(mine.id).status == "ready"


def test_a_worker_that_finishes_with_a_no_keeps_the_children_back(board: Board) -> None:
    board.create(draft())
    board.create(draft(parents=("k1",)))
    take(board)[1].block("the tests fail")
    assert board.card("k1").reason == "the tests fail"
    assert board.card("k2").reason == "waits for k1, which is blocked: the tests fail"
    assert nothing(board)


def test_f5_1_tries_are_bounded_and_the_last_text_stays(board: Board) -> None:
    board.create(draft())
    for text in ("one", "two", "I am done, I think"):
        take(board)[1].end("failed", text)
    card = board.card("k1")
    assert (card.status, card.reason) == ("blocked", "failed after 3 tries: I am done, I think")
    assert nothing(board)
    assert board.unblock("k1").status == "ready"
    take(board)[1].end("failed", "again")
    assert board.card("k1").status == "ready", "after an unblock tries count anew"


def test_max_retries_is_tries_after_the_first(board: Board) -> None:
    board.create(draft(max_retries=0))
    board.create(draft(max_retries=1))
    for _ in range(3):
        take(board)[1].end("gave_up", "50 turns")
    assert [board.card(card).reason for card in ("k1", "k2")] == [
        "limit reached after 1 try: 50 turns",
        "limit reached after 2 tries: 50 turns",
    ]


def test_waits_double(open_board: Open) -> None:
    board = open_board(retry_seconds=100, failure_limit=4)
    board.create(draft())
    for wait in (100, 200, 400):
        take(board)[1].end("failed", "x")
        card = board.card("k1")
        assert card.retry_at - card.updated == pytest.approx(wait)
        assert nothing(board), "its time has not come"
        assert board.card("k1").status == "ready"
        with board._database.write() as transaction:
            transaction.change("UPDATE cards SET retry_at = 0")


def test_f5_2_the_servers_failures_are_not_the_workers(board: Board) -> None:
    board.create(draft())
    for state in ("failed", "provider_error", "provider_error", "failed", "lost", "lost", "stopped", "stopped"):
        take(board)[1].end(state, "503" if state == "provider_error" else "x")
        assert board.card("k1").status == "ready"
    take(board)[1].end("provider_error", "provider error: 503")
    assert board.card("k1").reason == "provider error after 3 tries: 503"
    assert [run.state for run in board.runs("k1")].count("provider_error") == 3


def test_a_stopped_run_is_no_try_and_waits_for_nothing(open_board: Open) -> None:
    board = open_board(retry_seconds=100)
    board.create(draft())
    for _ in range(5):
        take(board)[1].end("stopped", "the program ended")
    assert (board.card("k1").status, board.card("k1").retry_at) == ("ready", 0)


def test_f5_3_a_claim_whose_owner_lives_is_extended_not_taken(board: Board) -> None:
    board.create(draft())
    claim, hold = take(board)
    shift(board, 100_000)
    found = board.reclaim_expired()
    assert (found.lost, [run.id for run in found.extended]) == ((), [claim.run.id])
    assert board.reclaim_expired().extended == (), "its lease is new"
    run = hold.check()
    assert run.expires - run.heartbeat > 100_000, "nobody made up a sign of life"
    assert hold.complete("done").status == "done"


def test_a_claim_whose_owner_is_dead_is_taken_at_once(board: Board) -> None:
    board.create(draft())
    claim, hold = take(board, dead_owner())
    found = board.reclaim_expired()
    assert [run.id for run in found.lost] == [claim.run.id]
    assert (board.card("k1").status, board.runs("k1")[0].state) == ("ready", "lost")
    with pytest.raises(RunOver, match="its process is gone"):
        hold.heartbeat()


def test_an_owner_on_another_machine_is_judged_by_its_lease_alone(board: Board) -> None:
    board.create(draft())
    take(board, foreign_owner())
    assert board.reclaim_expired().lost == ()
    shift(board, board.rules.claim_ttl_seconds + 1)
    assert len(board.reclaim_expired().lost) == 1
    assert "no sign of life for 901 s" in board.runs("k1")[0].error


def test_f5_4_a_new_claim_is_judged_by_its_own_heartbeat(board: Board) -> None:
    board.create(draft())
    take(board, foreign_owner())
    shift(board, 3600)
    board.reclaim_expired()
    claim, _ = take(board, foreign_owner())
    assert board.reclaim_expired().lost == ()
    assert board.card("k1").run == claim.run


def test_one_that_beats_while_it_is_judged_is_left_alone(board: Board) -> None:
    board.create(draft())
    _, hold = take(board, foreign_owner())
    shift(board, 3600)

    def judge(run: Run) -> bool:
        hold.heartbeat()
        return False

    assert board.reclaim_expired(alive=judge).lost == ()
    assert hold.complete("done").status == "done"


def test_a_lost_run_is_a_bounded_try_too(board: Board) -> None:
    board.create(draft())
    for _ in range(3):
        take(board, dead_owner())
        board.reclaim_expired()
    assert board.card("k1").reason == "worker lost after 3 tries: its process is gone"


def test_f5_13_identity_is_more_than_pid_and_host_name() -> None:
    me = this_owner()
    assert lives(me, 0) is True
    assert lives(replace(me, host="renamed"), 1e9) is True, "a host name says nothing"
    assert lives(replace(me, birth="1"), 0) is False, "another program has the pid now"
    rebooted = replace(me, boot="other " + me.boot.partition(" ")[2])
    assert (lives(rebooted, 10), lives(rebooted, 1000)) == (None, False)
    assert lives(replace(rebooted, machine="elsewhere"), 1e9) is None
    other_container = replace(me, boot=me.boot.partition(" ")[0] + " pid:[1]")
    assert lives(other_container, 1e9) is None
    assert this_owner().token != me.token
    assert this_owner(me.token) == me


def test_f5_20_runs_tell_their_history(board: Board) -> None:
    board.create(draft())
    take(board)[1].end("failed", "no luck")
    take(board)[1].complete("42")
    shown = board.show("k1")
    assert (shown.card.result, shown.card.runs, shown.card.run) == ("42", 2, None)
    first, second = shown.runs
    assert (first.state, first.error, second.state, second.summary) == ("failed", "no luck", "done", "42")
    assert first.ended is not None
    assert first.started <= first.heartbeat <= first.ended <= second.started


def test_a_comment_of_a_worker_bears_its_profile(board: Board) -> None:
    board.create(draft())
    board.create(draft())
    claim, hold = take(board)
    hold.comment("mine")
    hold.comment("yours", card="k2")
    kept = [board.show(card).comments[0] for card in ("k1", "k2")]
    assert [(item.author, item.run, item.text) for item in kept] == [
        ("default", claim.run.id, "mine"),
        ("default", claim.run.id, "yours"),
    ]
    hold.link("k1", "k2")
    assert hold.card().children == ("k2",)


def test_assigning_waits_for_the_run_to_end_and_gives_new_tries(open_board: Open) -> None:
    board = open_board(retry_seconds=100, failure_limit=2)
    board.create(draft())
    _, hold = take(board)
    with pytest.raises(IllegalMove, match="k1 is running"):
        board.assign("k1", "researcher")
    hold.end("failed", "x")
    assert nothing(board)
    board.assign("k1", "researcher")
    take(board)[1].end("failed", "y")
    assert board.card("k1").status == "ready"
