"""Many processes on one board, real ones: races, a crowd, a holder that is killed, and how fast others learn of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import time
from contextlib import closing

from hermes_engine.board import Changes, this_owner
from tests.board.invariants import right
from tests.board.support import HERE, Place, draft, harvest, take

CLAIMERS = """
won = []
for line in sys.stdin:
    claim = board.claim(this_owner(), profiles=HERE)
    if claim is not None:
        won.append(claim.card.id)
    say("done")
say(won)
"""


def rounds(processes: list[subprocess.Popen[str]], count: int) -> None:
    """Lets every process act once, at the same instant, so many times."""
    for _ in range(count):
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
        for process in processes:
            assert process.stdin
            process.stdin.flush()
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == '"done"\n', process.stderr and process.stderr.read()


def test_f5_6_of_eight_claimers_one_wins_a_hundred_times(place: Place) -> None:
    with closing(place.open()) as board:
        claimers = place.spawn(CLAIMERS, count=8)
        for number in range(100):
            board.create(draft())
            rounds(claimers, 1)
            assert len(board.open_runs()) == number + 1
        won = [card for cards in harvest(claimers) for card in cards]
        assert sorted(won, key=lambda card: int(card[1:])) == [f"k{n}" for n in range(1, 101)]


CREATORS = """
ids = []
for line in sys.stdin:
    ids.append(board.create(CardDraft(f"by {number}", idempotency_key=f"k{len(ids)}")).id)
    say("done")
say(ids)
"""


def test_f5_7_of_eight_creators_with_one_key_all_get_one_card(place: Place) -> None:
    with closing(place.open()) as board:
        creators = place.spawn(CREATORS, count=8)
        rounds(creators, 20)
        got = harvest(creators)
        assert all(ids == got[0] for ids in got)
        assert len(set(got[0])) == len(board.cards()) == 20


CROWD = """
sys.stdin.readline()
done = 0
for turn in range(10):
    card = board.create(CardDraft(f"{number} {turn}", assignee="researcher")); done += 1
    board.comment(card.id, "note", by="x"); done += 1
    board.edit(card.id, priority=turn); done += 1
    claim = board.claim(this_owner(), profiles={"researcher"}); done += 1
    Hold(board, claim.token).complete("r"); done += 1
say(done)
"""


def test_twenty_processes_do_fifty_things_each_and_all_succeed(place: Place) -> None:
    with closing(place.open()) as board:
        crowd = place.spawn(CROWD, count=20)
        assert harvest(crowd, "go\n") == [50] * 20
        assert board.counts()["done"] == 200
        assert [len(details.runs) for details in board.details()] == [1] * 200
        ids = [event.id for event in board.events(limit=5000)]
        assert ids == sorted(ids)
        assert len(ids) == 200 * 5
    if place.url is None:
        with closing(sqlite3.connect(place.home.root / "kanban.db")) as file:
            assert file.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


HOLDER = """
claim = board.claim(this_owner(), profiles=HERE)
say(claim.token)
sys.stdin.read()
"""


def test_a_killed_holder_loses_its_card_and_nothing_else(place: Place) -> None:
    with closing(place.open()) as board:
        board.create(draft())
        (holder,) = place.spawn(HOLDER)
        assert holder.stdout
        assert holder.stdout.readline()
        assert board.card("k1").status == "running"
        assert board.reclaim_expired().lost == ()
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=10)
        assert [run.owner.pid for run in board.reclaim_expired().lost] == [holder.pid]
        assert board.card("k1").status == "ready"
        assert take(board)[1].complete("done").status == "done"


WRITER = """
sys.stdin.readline()
for turn in range(100000):
    board.create(CardDraft("x", body="x" * 2000, parents=("k1",)))
"""


def test_a_writer_that_is_killed_leaves_a_board_that_is_whole(place: Place) -> None:
    with closing(place.open()) as board:
        board.create(draft())
        for _ in range(3):
            (writer,) = place.spawn(WRITER)
            before, deadline = board.latest(), time.monotonic() + 30
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
            while board.latest() < before + 5 and time.monotonic() < deadline:
                time.sleep(0.005)
            writer.send_signal(signal.SIGKILL)
            writer.communicate(timeout=10)
            assert board.latest() >= before + 5
        assert {event.card for event in board.events(limit=100_000)} == {card.id for card in board.cards()}
        assert all(card.parents == ("k1",) for card in board.cards() if card.id != "k1")
        assert board.block("k1", "still usable").status == "blocked"


ACTOR = """
say("here")
for line in sys.stdin:
    board.block("k1", "from elsewhere") if line.strip() == "block" else board.unblock("k1")
    say("done")
"""


def test_another_processs_change_is_heard_when_it_is_made(place: Place) -> None:
    with closing(place.open()) as board, closing(board.changes()) as changes:
        board.create(draft())
        (actor,) = place.spawn(ACTOR)
        assert actor.stdin
        assert actor.stdout
        assert actor.stdout.readline() == '"here"\n'
        for order in ("block", "unblock"):
            heard(place, changes)
            actor.stdin.write(order + "\n")
            actor.stdin.flush()
            assert changes.wait(60)
            assert board.events()[-1].verb == order, "nothing else wakes, and what woke can be read"
        heard(place, changes)
        board.comment("k1", "our own writes are heard too")
        assert changes.wait(60)
        assert not heard(place, changes)
        harvest([actor])


def heard(place: Place, changes: Changes) -> bool:
    """Whether anything was written since the last look. A server tells of it when it likes, but in order: so it is
    known once a mark that is sent now has come.
    """
    if place.url is None:
        return changes.changed()
    import psycopg

    from hermes_engine.board.postgres import PostgresChanges

    assert isinstance(changes, PostgresChanges)
    with psycopg.connect(place.url, autocommit=True) as other:
        other.execute(f"NOTIFY \"{changes._schema}\", 'mark'")
    told, changes._missed = changes._missed, False
    for notice in changes._connection.notifies(timeout=60):
        if notice.payload == "mark":
            return told
        told = True
    raise AssertionError("the mark did not come")


def test_files_are_private_from_the_moment_they_exist(place: Place) -> None:
    old = os.umask(0)
    try:
        boards = place.boards()
        boards.create("web")
        boards.use("web")
        for slug in ("default", "web"):
            with closing(boards.open(slug)) as board:
                board.create(draft())
                _private(place)
    finally:
        os.umask(old)


def _private(place: Place) -> None:
    for path in place.home.root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_file_of_another_program_is_left_alone(place: Place) -> None:
    if place.url is not None:
        return
    place.home.root.mkdir()
    path = place.home.root / "kanban.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE tasks (id TEXT)")
    before = path.read_bytes()
    (info,) = place.boards().list()
    assert "belongs to another program" in info.fault
    assert path.read_bytes() == before


def test_who_changes_nothing_wakes_nobody(place: Place) -> None:
    with closing(place.open()) as board, closing(board.changes()) as changes:
        board.create(draft(assignee="elsewhere"))
        heard(place, changes)
        assert board.claim(this_owner(), profiles=HERE) is None
        board.reclaim_expired()
        board.cards()
        assert not heard(place, changes), "else two dispatchers would keep each other awake"


CHAOS = """
import random
from hermes_engine.board import RunOver
from hermes_engine.errors import UsageError
rnd, holds, seen, told, most = random.Random(number), [], 0, 0, 0
sys.stdin.readline()
for turn in range(150):
    a, b = (f"k{rnd.randint(1, 20)}" for _ in range(2))
    hold = rnd.choice(holds[-4:]) if holds else Hold(board, "none")
    verbs = [
        lambda: board.create(CardDraft("x", parents=(a,))),
        lambda: board.complete(a),
        lambda: board.archive(a),
        lambda: board.reopen(a),
        lambda: board.block(a, "x"),
        lambda: board.unblock(a),
        lambda: board.link(a, b),
        lambda: board.unlink(a, b),
        lambda: board.edit(a, priority=turn),
        lambda: board.review(a),
        lambda: board.reclaim(a),
        lambda: board.reclaim_expired(alive=lambda run: rnd.random() < 0.8),
        lambda: hold.complete("x"),
        lambda: hold.heartbeat(activity="x"),
        lambda: hold.end("failed", "x"),
        lambda: hold.comment("x", card=a),
        lambda: hold.create(CardDraft("x")),
        lambda: hold.request_review("x"),
    ]
    claim = board.claim(this_owner(), profiles=HERE, cap=5)
    if claim:
        holds.append(Hold(board, claim.token))
    try:
        rnd.choice(verbs)()
    except (UsageError, RunOver):
        pass
    new = board.events(after=seen, limit=100000)
    told, seen = told + len(new), new[-1].id if new else seen
    most = max(most, len(board.open_runs()))
say([told, seen, most])
"""


def test_many_at_once_doing_anything_leave_the_board_right_and_miss_no_event(place: Place) -> None:
    with closing(place.open()) as board:
        for _ in range(10):
            board.create(draft())
        heard = harvest(place.spawn(CHAOS, count=5), "go\n")
        right(board)
        events = [event.id for event in board.events(limit=1_000_000)]
        for told, seen, most in heard:
            assert told == len([event for event in events if event <= seen]), "an event came late, below a number seen"
            assert most <= 5, "never more at work than the cap"


WORKERS = """
from threading import Thread
done = []
def work():
    while not board.counts()["done"] >= int(args[0]):
        claim = board.claim(this_owner(), profiles=HERE)
        if claim is None:
            changes = board.changes()
            changes.changed()
            board.counts()["ready"] or changes.wait(0.2)
            changes.close()
        else:
            Hold(board, claim.token).complete("r")
            done.append(claim.card.id)
sys.stdin.readline()
threads = [Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say(done)
"""


def test_eight_workers_in_four_processes_run_each_of_500_cards_once_and_in_order(place: Place) -> None:
    with closing(place.open()) as board:
        plan = [
            draft(f"{n}", parents=tuple(f"@{n - step}" for step in (1, 7, 30) if n % 3 and n >= step))
            for n in range(500)
        ]
        board.create_all(plan)
        done = harvest(place.spawn(WORKERS, "500", count=4), "go\n")
        assert sorted(card for cards in done for card in cards) == sorted(card.id for card in board.cards())
        runs = {details.card.id: details.runs for details in board.details()}
        assert {len(of_card) for of_card in runs.values()} == {1}
        for card in board.cards():
            (run,) = runs[card.id]
            assert all((runs[parent][0].ended or 1e99) <= run.started for parent in card.parents), card.id
        right(board)
