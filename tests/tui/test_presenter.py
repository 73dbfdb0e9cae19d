"""From events to blocks: every turn as a person should see it."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_engine import events as ev
from hermes_engine.messages import CANCELLED_RESULT, Display, Message, ToolCall, Usage
from hermes_engine.requests import WITHDRAWN
from hermes_tui.presenter import ChatPresenter, Work, blocks_of
from hermes_tui.presenter.history import MAX_RESULT
from hermes_tui.presenter.requests import approval_options
from hermes_tui.widgets.blocks import AnswerBlock, Block, NoticeBlock, RequestBlock, ThoughtBlock, ToolBlock, UserBlock
from hermes_tui.widgets.facts import WorkFacts
from tests.tui.drawing import drawn
from tests.tui.stage import AGENT, SESSION, Script


class Page:
    """The list a presenter writes into."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def add(self, block: Block) -> None:
        self.blocks.append(block)

    def take_out(self, block: Block) -> None:
        self.blocks.remove(block)


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def presenter(page: Page) -> ChatPresenter:
    made = ChatPresenter(page, lambda agent: f"agent {agent}")
    made.show(SESSION, AGENT)
    return made


def play(presenter: ChatPresenter, *events: ev.Event) -> None:
    for event in events:
        presenter.take(event)


def kinds(page: Page) -> list[str]:
    return [type(block).__name__.removesuffix("Block") for block in page.blocks]


def test_a_turn_with_thought_tool_and_answer(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1))
    assert presenter.doing == "waiting for the model"
    play(presenter, say(ev.ThoughtDelta, text="hm"), say(ev.ThoughtDelta, 4.0, text=", yes"))
    assert presenter.doing == "thinking"
    play(presenter, say(ev.TextDelta, text="I will"), say(ev.TextDelta, text=" look."))
    play(presenter, say(ev.ReplyFinished, step=1, text="I will look.", reasoning="hm, yes", calls=1))
    play(presenter, *say.tool("c", Display("Run", "ls", "2 files", "command", "a\nb")))
    play(presenter, say(ev.StepStarted, step=2), say(ev.TextDelta, text="Done."))
    play(presenter, say(ev.ReplyFinished, step=2, text="Done."), say(ev.TurnFinished, answer="Done."))
    assert kinds(page) == ["User", "Thought", "Answer", "Tool", "Answer"]
    assert drawn(page.blocks[1]) == "  ▸ Thought  4 s"
    assert "2 files" in drawn(page.blocks[3])
    assert not any(getattr(block, "live", False) for block in page.blocks)
    assert presenter.doing == ""


def test_a_retry_takes_back_what_was_said(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1), say(ev.TextDelta, text="half"))
    play(presenter, say(ev.StepRetried, step=1, attempt=1, delay=2.0, reason="HTTP 500: down"))
    assert kinds(page) == ["User", "Wait"]
    assert "HTTP 500: down. Trying again in 2 s (try 2)" in drawn(page.blocks[1], 90)
    play(presenter, say(ev.StepRetried, step=1, attempt=2, delay=4.0, reason="HTTP 500: down"))
    assert kinds(page) == ["User", "Wait"]
    play(presenter, say(ev.TextDelta, text="whole"), say(ev.ReplyFinished, step=1, text="whole"))
    assert kinds(page) == ["User", "Answer"]
    assert page.blocks[1].copy_text() == "whole"


def test_the_seconds_until_the_next_try_are_counted_down(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1))
    play(presenter, say(ev.StepRetried, step=1, attempt=1, tries=3, delay=2.1, reason="HTTP 500: down"))
    block = page.blocks[1]
    shown = [drawn(block, 90)]
    for now in (10.0, 10.2, 11.5, 12.05, 12.3):
        assert block.animated
        block.tick(1, now)
        shown.append(drawn(block, 90))
    assert not block.animated
    assert [line.partition(" in ")[2] for line in shown] == [
        "3 s (try 2 of 3)", "3 s (try 2 of 3)", "2 s (try 2 of 3)", "1 s (try 2 of 3)", "1 s (try 2 of 3)",
        "0 s (try 2 of 3)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "error", "shown"),
    [
        ("cancelled", "cancelled", "Stopped. What was said so far stays."),
        ("error", "401: the key was refused", "401: the key was refused"),
        ("max_turns", "turn limit: 90 requests", "turn limit: 90 requests"),
        ("timeout", "stopped after 5 s", "stopped after 5 s"),
    ],
)
def test_f9_16_a_turn_that_ends_badly_says_so_and_nothing_keeps_running(
    presenter: ChatPresenter, page: Page, status: str, error: str, shown: str
) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1), say(ev.TextDelta, text="half"))
    play(presenter, say(ev.ToolStarted, call_id="c", name="terminal", display=Display("Run", "sleep 9")))
    play(presenter, say(ev.TurnFinished, status=status, error=error))
    assert shown in drawn(page.blocks[-1])
    assert not any(block.animated for block in page.blocks)
    assert not any(getattr(block, "live", False) for block in page.blocks)


def test_a_cut_off_answer_is_marked(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1), say(ev.TextDelta, text="half an"))
    play(presenter, say(ev.ReplyFinished, step=1, text="half an", partial=True))
    assert drawn(page.blocks[1]).endswith("cut off here")


def test_reads_in_a_row_share_a_card(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"))
    for number in range(3):
        play(presenter, *say.tool(f"c{number}", Display("Read", f"f{number}.py", body="x")))
    play(presenter, *say.tool("c9", Display("Run", "make")))
    play(presenter, *say.tool("c10", Display("Read", "g.py")))
    assert kinds(page) == ["User", "Tool", "Tool", "Tool"]
    assert "f0.py  +2 more" in drawn(page.blocks[1])


def test_parallel_calls_end_on_their_own_cards(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"))
    for name in ("a", "b"):
        play(presenter, say(ev.ToolStarted, call_id=name, name="terminal", display=Display("Run", name)))
    for name in ("b", "a"):
        play(presenter, say(ev.ToolProgress, call_id=name, text=f"progress {name}"))
    assert "progress a" in drawn(page.blocks[1])
    play(presenter, say(ev.ToolFinished, call_id="b", status="error", display=Display("Run", "b", "exit 1")))
    play(presenter, say(ev.ToolFinished, call_id="a", status="ok", display=Display("Run", "a", "fine")))
    assert "fine" in drawn(page.blocks[1])
    assert "exit 1" in drawn(page.blocks[2])


def test_f9_17_steering_is_shown_once(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1))
    presenter.steered("also this")
    assert "goes in at the next step" in drawn(page.blocks[-1])
    play(presenter, say(ev.StepStarted, step=2))
    assert drawn(page.blocks[-1]) == "▌ also this"
    presenter.steered("too late")
    play(presenter, say(ev.ReplyFinished, step=2, text="end"), say(ev.TurnFinished, answer="end"))
    following = Script(run="r2")
    play(presenter, following(ev.TurnStarted, prompt="too late"))
    assert [block.text for block in page.blocks if isinstance(block, UserBlock)] == ["go", "also this", "too late"]


def test_what_could_not_be_handed_over_is_in_the_queue_and_no_longer_here(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1))
    presenter.steered("also this")
    presenter.queued(["another"])
    assert kinds(page) == ["User", "User"]
    play(presenter, say(ev.TurnFinished, status="cancelled"))
    presenter.queued(["also this", "another"])
    assert kinds(page) == ["User", "Notice"]
    play(presenter, Script(run="r2")(ev.TurnStarted, prompt="also this"))
    assert kinds(page) == ["User", "Notice", "User"]


def test_other_agents_stay_out_of_the_transcript_but_may_ask(presenter: ChatPresenter, page: Page) -> None:
    child = Script(agent="child", run="rc")
    play(presenter, child(ev.TurnStarted, prompt="task"), child(ev.TextDelta, text="x"))
    other = Script(session="other", agent="elsewhere", run="ro")
    play(presenter, other(ev.TurnStarted, prompt="task"), other(ev.Notice, text="not here"))
    assert page.blocks == []
    play(presenter, child(ev.ApprovalAsked, request="q", title="Run", detail="rm x", reason="removes", name="terminal"))
    assert kinds(page) == ["Request"]
    assert "agent child asks" in drawn(page.blocks[0])


def test_requests_settle_in_a_word(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    for number, (choice, note, words) in enumerate(
        [
            ("once", "", "Allowed once"),
            ("session", "", "Allowed for this session"),
            ("always", "", "Allowed always"),
            ("no", "use python", "Refused: use python"),
            ("no", WITHDRAWN.note, "Withdrawn"),
            ("answer", "main", "Answered: main"),
        ]
    ):
        play(presenter, say(ev.ApprovalAsked, request=f"q{number}", title="Run", detail="x"))
        assert len(presenter.waiting()) == 1
        play(presenter, say(ev.RequestSettled, request=f"q{number}", choice=choice, note=note))
        assert words in drawn(page.blocks[-1])
        assert presenter.waiting() == []


def test_choices_keep_their_digits() -> None:
    assert [(option.digit, option.choice) for option in approval_options("rm")] == [
        (1, "once"), (2, "session"), (3, "no"), (4, "always"),
    ]  # fmt: skip
    assert [(option.digit, option.choice) for option in approval_options("")] == [(1, "once"), (3, "no")]


def test_a_question_offers_its_choices_and_words(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.QuestionAsked, request="q", question="Which branch?", choices=("main", "next")))
    block = page.blocks[0]
    assert isinstance(block, RequestBlock)
    assert [option.label for option in block.options] == ["main", "next", "Something else…"]
    play(presenter, say(ev.QuestionAsked, request="q", question="Which branch?", choices=("main", "next")))
    assert len(page.blocks) == 1


def test_compaction_and_notices_are_lines(presenter: ChatPresenter, page: Page) -> None:
    say = Script()
    play(presenter, say(ev.ContextCompacted, before_tokens=120_000, after_tokens=9_500, dropped=40))
    play(presenter, ev.Notice(level="warning", text="from nowhere"), say(ev.Notice, text="here"))
    assert "120k to 9.5k" in drawn(page.blocks[0], 90)
    assert [block.text for block in page.blocks[1:] if isinstance(block, NoticeBlock)] == ["from nowhere", "here"]


def test_a_saved_chat_opens_as_blocks() -> None:
    calls = (ToolCall("c1", "terminal", '{"command": "ls"}'), ToolCall("c2", "patch", "not json"))
    messages = [
        Message("user", "go"),
        Message("assistant", "Looking.", calls, reasoning="hm"),
        Message("tool", "a\nb", tool_call_id="c1", name="terminal"),
        Message("tool", CANCELLED_RESULT, tool_call_id="c2", name="patch"),
        Message("assistant", "half", partial=True),
    ]
    blocks = blocks_of(messages)
    assert [type(block) for block in blocks] == [
        UserBlock,
        ThoughtBlock,
        AnswerBlock,
        ToolBlock,
        ToolBlock,
        AnswerBlock,
    ]
    assert "Run       ls" in drawn(blocks[3])
    assert "■" in drawn(blocks[4])
    assert "cut off here" in drawn(blocks[5])


def test_f9_18_a_huge_stored_result_is_clipped() -> None:
    call = ToolCall("c", "terminal", '{"command": "yes"}')
    messages = [Message("assistant", "", (call,)), Message("tool", "y\n" * 10_000_000, tool_call_id="c")]
    (card,) = blocks_of(messages)
    card.open = True
    assert len(card.copy_text()) < MAX_RESULT + 200
    assert "more lines" in drawn(card)


def row(**values: Any) -> Any:
    from hermes_engine.work.supervisor import AgentRow

    return AgentRow(**{"id": "x", "session": SESSION, **values})


def test_f1_11_counters_of_a_run_add_up_at_any_moment() -> None:
    work = Work()
    say = Script(session="evals", agent="b")
    work.take(say(ev.BatchStarted, name="evals", total=10, done=2, counts={"total": 10, "kept": 2, "pending": 8}))
    for kept in range(3, 8):
        counts = {"total": 10, "kept": kept, "failed": 1, "invalid": 1, "pending": 8 - kept}
        work.take(say(ev.RowFinished, 10.0, counts=counts))
        (fact,) = work.batches()
        assert fact.kept + fact.rejected + fact.failed + fact.invalid + fact.pending == fact.total
    assert fact.percent == 90
    assert fact.seconds_left is not None
    assert 0 < fact.seconds_left < 20
    work.take(say(ev.BatchFinished, name="evals", state="interrupted", reason="stopped", counts=counts))
    assert work.batches()[0].state == "interrupted"
    assert work.batches()[0].seconds_left is None


def test_a_paused_run_promises_no_end_and_a_run_in_which_nothing_ends_a_later_one() -> None:
    work = Work()
    work.take(ev.BatchStarted(name="r", total=10, counts={"total": 10, "pending": 10}, time=100.0))
    work.take(ev.RowFinished(session="r", counts={"total": 10, "kept": 2, "pending": 8}, time=110.0))
    assert work.batches(110.0)[0].seconds_left == 40
    assert work.batches(130.0)[0].seconds_left == 120
    work.take(ev.BatchChanged(name="r", paused=True, time=131.0))
    (fact,) = work.batches(131.0)
    assert (fact.state, fact.at_work, fact.seconds_left) == ("paused", True, None)
    work.take(ev.BatchChanged(name="r", paused=False, time=132.0))
    assert work.batches(132.0)[0].state == "running"


def test_the_percent_of_several_runs_is_that_of_all_their_rows() -> None:
    work = Work()
    work.take(ev.BatchStarted(name="small", total=10, counts={"total": 10, "kept": 10}))
    work.take(ev.BatchStarted(name="large", total=90, counts={"total": 90, "kept": 15, "pending": 75}))
    work.take(ev.BatchStarted(name="over", total=50, counts={"total": 50, "kept": 1, "pending": 49}))
    work.take(ev.BatchFinished(name="over", state="interrupted", counts={"total": 50, "kept": 1, "pending": 49}))
    assert WorkFacts(batches=work.batches()).batch_percent == 25
    assert WorkFacts().batch_percent is None


def test_the_end_of_a_run_and_its_warnings_stand_in_the_chat(presenter: ChatPresenter, page: Page) -> None:
    counts = {"total": 9, "kept": 4, "failed": 2, "pending": 3}
    play(
        presenter,
        ev.Notice(session="r", run="r", level="warning", text="all 20 rows so far were rejected [b]"),
        ev.Notice(session="r", run="r", level="info", text="the server is back"),
        ev.BatchFinished(session="r", name="r", state="stopped", reason="the cost cap is reached", counts=counts),
        ev.BatchFinished(session="e", name="e", state="done", counts={"total": 2, "rejected": 2}),
        ev.BatchFinished(session="w", name="w", state="done", counts={"total": 2, "kept": 2}),
    )
    told = [(block.level, block.text) for block in page.blocks if isinstance(block, NoticeBlock)]
    assert told == [
        ("warning", "Batch r: all 20 rows so far were rejected [b]"),
        ("warning", "Batch r: stopped, 4 kept, 2 failed, 3 waiting — the cost cap is reached · /batch show r"),
        ("warning", "Batch e: done, nothing kept, 0 kept, 2 rejected · /batch show e"),
        ("info", "Batch w: done, 2 kept · /batch show w"),
    ]


def test_f9_10_a_run_without_rows_divides_by_nothing() -> None:
    work = Work()
    work.take(ev.BatchStarted(name="empty", total=0))
    work.take(ev.BatchFinished(name="empty"))
    (fact,) = work.batches()
    assert fact.percent == 0
    assert fact.pending == 0


def test_f1_9_a_resumed_run_begins_where_it_was() -> None:
    work = Work()
    work.take(ev.BatchStarted(name="r", total=3, done=2, counts={"total": 3, "kept": 2, "pending": 1}, time=5.0))
    (fact,) = work.batches()
    assert (fact.settled, fact.total) == (2, 3)
    assert fact.seconds_left is None, "the end is told from rows of this run"


def test_f7_14_unknown_usage_is_not_zero() -> None:
    work = Work()
    work.show(SESSION, AGENT)
    unknown = Usage(tokens_known=False, cost_known=False)
    work.take(ev.UsageReported(session=SESSION, agent=AGENT, usage=unknown, context_tokens=900, estimated=True))
    usage = work.usage()
    assert not usage.tokens_known
    assert not usage.cost_known
    assert work.context.estimated
    assert work.context.percent is None


def test_usage_of_the_agents_a_chat_started_is_its_own() -> None:
    work = Work()
    work.show(SESSION, AGENT, usage=Usage(100, 0, cost_usd=0.1))
    work.take(ev.AgentStarted(session="s2", agent="kid", parent=AGENT, owner=SESSION, kind="child"))
    work.take(ev.AgentStarted(session="s3", agent="other", owner="another chat", kind="background"))
    work.take(ev.UsageReported(session="s2", agent="kid", usage=Usage(10, 5, cost_usd=0.02)))
    work.take(ev.UsageReported(session="s3", agent="other", usage=Usage(70, 5, cost_usd=0.5)))
    work.take(ev.UsageReported(session="evals", agent="b", usage=Usage(1000, 5, cost_usd=9)))
    usage = work.usage(cap=1.0)
    assert (usage.tokens, round(usage.cost, 2), usage.agents_cost, usage.cap) == (115, 0.12, 0.02, 1.0)
