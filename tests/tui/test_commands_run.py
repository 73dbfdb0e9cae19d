"""Every slash command on a real engine and a scripted server, seen through a host that keeps what is said."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_engine.errors import NotConfigured
from hermes_engine.events import BatchFinished, Event, TurnFinished, TurnStarted
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from hermes_tui.commands import Output, complete, dispatch
from hermes_tui.commands.batch import run_name
from hermes_tui.commands.host import HostKind
from tests.conftest import Serve
from tests.server.scripted import Answer, ScriptedServer, hang, say


class Desk:
    """A front end without a screen: a real `CommandHost` that keeps what it is told."""

    kind: HostKind = "repl"

    def __init__(self, resolved: Resolved, cwd: Path | None) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()
        self.resolved = resolved
        self._engine = Engine(resolved, self._hear, attended=True) if cwd else None
        self.session = ""
        if self._engine and cwd:
            self._engine.start()
            self.session = self._engine.open_session(cwd).id
        self.shown: list[Output] = []
        self.screens: dict[str, dict[str, str]] = {}
        self.has_screens = False
        self.quits = 0
        self.copied = ""
        self.draft = ""
        self.opened: list[str | None] = []

    @property
    def engine(self) -> Engine:
        """The engine; there is none before a model is set up."""
        if self._engine is None:
            raise NotConfigured("no model is set up yet")
        return self._engine

    def _hear(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def until(self, holds: Callable[[], object], timeout: float = 15) -> None:
        """Waits until a condition holds."""
        deadline = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < deadline, self.events[-5:]
            time.sleep(0.01)

    def turn(self, text: str) -> None:
        """Sends a message and waits for the turn's end."""
        done = self.finished
        self.engine.send(self.session, text)
        self.until(lambda: self.finished > done and not self.engine.busy(self.session))

    @property
    def finished(self) -> int:
        """How many turns have ended."""
        return sum(isinstance(event, TurnFinished) for event in self.events)

    def do(self, text: str) -> Output:
        """Dispatches a line that must run; what it said last."""
        before = len(self.shown)
        assert dispatch(text, self) == "ran"
        return self.shown[-1] if len(self.shown) > before else Output("text")

    def show(self, output: Output) -> None:
        self.shown.append(output)

    def open_screen(self, name: str, **options: str) -> bool:
        self.screens[name] = options
        return self.has_screens

    def ask_quit(self) -> None:
        self.quits += 1

    def copy(self, text: str) -> str:
        self.copied = text
        return "copied"

    def set_draft(self, text: str) -> None:
        self.draft = text

    def steer(self, text: str) -> None:
        self.engine.steer(self.session, text)

    def new_session(self) -> None:
        self.opened.append(None)

    def run_session(self, *, resume: str) -> None:
        self.opened.append(resume)

    def in_background(self, work: Callable[[], None]) -> None:
        work()


Sit = Callable[[list[Answer]], tuple[Desk, ScriptedServer]]


@pytest.fixture
def sit(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sit]:
    """`sit(script)` opens a desk on a scripted server, in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    desks: list[Desk] = []

    def open_one(script: list[Answer]) -> tuple[Desk, ScriptedServer]:
        server = serve(script)
        desk = Desk(resolve(Overrides(model="scripted", base_url=server.base_url)), folder)
        desks.append(desk)
        return desk, server

    yield open_one
    for desk in desks:
        desk.engine.close()


def said(output: Output) -> str:
    """Everything an output says."""
    return "\n".join([output.title, output.text, *("\t".join(row) for row in output.rows)])


def test_help_lists_every_command_and_explains_one(sit: Sit) -> None:
    desk, _server = sit([say("x")])
    assert "/compact [what to keep]" in said(desk.do("/help"))
    assert "also: /exit, /q" in said(desk.do("/help quit"))
    assert desk.do("/help nosuch").kind == "error"


def test_an_unknown_command_sends_nothing(sit: Sit) -> None:
    desk, server = sit([say("x")])
    assert dispatch("/modell demo", desk) == "refused"
    assert "Did you mean /model?" in desk.shown[-1].text
    assert dispatch("/etc/hosts is wrong", desk) == "text"
    assert server.requests == []


def test_model_and_mode_change_this_chat(sit: Sit) -> None:
    desk, server = sit([say("x")])
    assert "scripted" in said(desk.do("/model"))
    desk.do("/model other")
    desk.do("/mode plan")
    assert desk.engine.view(desk.session).mode == "plan"
    assert desk.do("/mode wild").kind == "error"
    desk.turn("hello")
    assert server.requests[0].body["model"] == "other"
    assert [item.text for item in complete("/mode p", desk)] == ["plan"]
    assert "demo" in [item.text for item in complete("/model ", desk)]
    desk.has_screens = True
    desk.do("/model")
    assert "model" in desk.screens


def test_toolsets_change_this_chat_from_the_next_turn(sit: Sit) -> None:
    desk, server = sit([say("x")])
    desk.do("/toolsets file,todo")
    desk.turn("one")
    assert set(server.requests[-1].tools) == {"read_file", "write_file", "patch", "search_files", "todo"}
    desk.do("/tools disable todo")
    desk.do("/tools enable terminal")
    desk.turn("two")
    assert "todo" not in server.requests[-1].tools
    assert "terminal" in server.requests[-1].tools
    desk.do("/tools enable kanban")
    desk.turn("three")
    assert "kanban_create" in server.requests[-1].tools
    desk.do("/toolsets none")
    desk.turn("four")
    assert "tools" not in server.requests[-1].body
    for wrong in ("/toolsets nosuch", "/tools enable", "/tools frobnicate x"):
        assert desk.do(wrong).kind == "error"
    assert "web_fetch" in said(desk.do("/toolsets"))
    assert [item.text for item in complete("/tools enable ka", desk)] == ["kanban"]
    assert complete("/tools enable ka", desk)[0].start == len("/tools enable ")


def test_stop_steer_and_agents_work_while_a_turn_runs_others_wait(sit: Sit) -> None:
    desk, server = sit([hang(60)])
    desk.engine.send(desk.session, "wait")
    desk.until(lambda: server.requests)
    assert "running" in said(desk.do("/agents"))
    assert dispatch("/compact", desk) == "refused"
    assert "when this turn has ended" in desk.do("/retry").text
    desk.do("/steer look at a.py")
    began = time.monotonic()
    desk.do("/stop")
    desk.until(lambda: not desk.engine.busy(desk.session))
    assert time.monotonic() - began < 1
    assert desk.do("/stop").kind == "error"
    assert desk.do("/stop nosuch").kind == "error"


def test_a_batch_file_is_looked_for_in_the_folder_of_the_chat(
    sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, _server = sit([say("row answer")])
    (tmp_path / "here" / "mine 2.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [item.text for item in complete("/batch mi", desk)] == ["mine 2.jsonl"]
    assert "runs beside this chat" in desk.do("/batch mine 2.jsonl 1").text
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    (event,) = [event for event in desk.events if isinstance(event, BatchFinished)]
    assert event.counts["total"] == 1


def test_stop_all_stops_every_agent(sit: Sit) -> None:
    desk, server = sit([hang(60)])
    desk.engine.send(desk.session, "wait")
    desk.until(lambda: server.requests)
    assert "all" in [item.text for item in complete("/stop ", desk)]
    assert "1 agent" in said(desk.do("/stop all"))
    desk.until(lambda: not desk.engine.busy(desk.session))


def test_the_queue_is_seen_and_edited(sit: Sit) -> None:
    desk, server = sit([hang(60), say("x")])
    assert "Nothing waits" in said(desk.do("/queue"))
    desk.engine.send(desk.session, "running")
    desk.until(lambda: server.requests)
    for text in ("a", "b", "c"):
        desk.engine.send(desk.session, text)
    assert [row[1] for row in desk.do("/queue").rows] == ["a", "b", "c"]
    assert [row[1] for row in desk.do("/queue up 3").rows] == ["a", "c", "b"]
    assert [row[1] for row in desk.do("/queue drop 1").rows] == ["c", "b"]
    desk.do("/queue edit 2")
    assert (desk.draft, desk.engine.queued(desk.session)) == ("b", ("c",))
    for wrong in ("/queue drop 9", "/queue drop x", "/queue drop", "/queue jump"):
        assert desk.do(wrong).kind == "error"
    desk.do("/queue clear")
    assert desk.engine.queued(desk.session) == ()


def test_retry_sends_the_last_message_again(sit: Sit) -> None:
    desk, server = sit([say("one"), say("two")])
    assert desk.do("/retry").kind == "error"
    desk.turn("the question")
    desk.do("/retry")
    desk.until(lambda: desk.finished == 2)
    assert server.requests[1].last["content"] == "the question"


def test_sessions_rename_resume_new(sit: Sit) -> None:
    desk, _server = sit([say("one")])
    assert "No saved chats" in said(desk.do("/sessions"))
    desk.turn("first words")
    desk.do("/rename  My\n title ")
    assert desk.engine.view(desk.session).title == "My title"
    desk.until(lambda: "My title" in said(desk.do("/sessions")))
    other = desk.engine.open_session(Path.cwd())
    desk.engine.send(other.id, "second chat")
    desk.until(lambda: desk.finished == 2)
    first, desk.session = desk.session, other.id
    desk.do("/resume my title")
    assert desk.opened == [first]
    assert [item.text for item in complete("/resume ", desk)] == [first]
    assert desk.do("/resume nosuch").kind == "error"
    assert desk.do(f"/resume {other.id}").kind == "error"
    desk.do("/new")
    assert desk.opened[-1] is None
    assert desk.do("/rename").kind == "error"


def test_compact_runs_as_a_turn_of_its_own(sit: Sit) -> None:
    desk, _server = sit([say("answer " * 50), say("a summary")])
    assert desk.do("/compact").kind == "error"
    for number in range(4):
        desk.turn(f"message {number} " + "word " * 200)
    desk.do("/compact keep the names")
    desk.until(lambda: desk.finished == 5)
    started = [event for event in desk.events if isinstance(event, TurnStarted)]
    assert len(started) == 5


def test_context_usage_status_settings_keys(sit: Sit) -> None:
    desk, _server = sit([say("hi", usage={"prompt_tokens": 1500, "completion_tokens": 20})])
    desk.turn("hello")
    assert "your messages\t1" in said(desk.do("/context"))
    usage = said(desk.do("/usage"))
    assert "1.5k" in usage
    assert "20" in usage
    assert "unknown" in usage, "the price is"
    assert desk.session in said(desk.do("/status"))
    assert "limits.max_turns\t90" in said(desk.do("/settings"))
    assert "Ctrl+C" in said(desk.do("/keys"))
    assert "terminal's own colours" in said(desk.do("/theme"))
    assert "Only the app has that" in said(desk.do("/mouse off"))
    assert desk.do("/sidebar perhaps").kind == "error"


def test_f9_13_copy_takes_the_source_text(sit: Sit) -> None:
    source = "Look:\n\n```python\nprint('a   b')\n\n" + "x" * 300 + "\n```\nand\n~~~\ntwo\n~~~\n"
    desk, _server = sit([say(source), say("short")])
    assert desk.do("/copy").kind == "error"
    desk.turn("a")
    desk.turn("b")
    desk.do("/copy")
    assert desk.copied == "short"
    desk.do("/copy 2")
    assert desk.copied == source
    desk.do("/copy code")
    assert desk.copied == "two"
    for wrong in ("/copy 3", "/copy x", "/copy 0"):
        assert desk.do(wrong).kind == "error"


def test_export_writes_markdown_and_json_and_never_over_a_file(sit: Sit) -> None:
    desk, _server = sit([say("the ``` answer")])
    assert desk.do("/export").kind == "error"
    desk.turn("the question")
    assert "Wrote 2 messages" in said(desk.do("/export"))
    (written,) = Path.cwd().glob("chat-*.md")
    assert "the question" in written.read_text()
    assert "the ``` answer" in written.read_text()
    desk.do("/export json out.json")
    roles = [message["role"] for message in json.loads(Path("out.json").read_text())["messages"]]
    assert roles == ["user", "assistant"]
    before = Path("out.json").read_bytes()
    assert desk.do("/export out.json").kind == "error"
    assert Path("out.json").read_bytes() == before


@pytest.mark.parametrize("name", ["../x.md", "/tmp/x.md", "a/../../x.md", "link/x.md", "a\0b", ".."])
def test_f10_6_an_export_goes_nowhere_else(name: str, sit: Sit, tmp_path: Path) -> None:
    desk, _server = sit([say("x")])
    desk.turn("a")
    outside = tmp_path / "outside"
    outside.mkdir()
    Path("link").symlink_to(outside)
    assert desk.do(f"/export md {name}").kind == "error"
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "x.md").exists()


def test_init_asks_the_model(sit: Sit) -> None:
    desk, server = sit([say("written")])
    desk.do("/init")
    desk.until(lambda: desk.finished == 1)
    assert "AGENTS.md" in server.requests[0].last["content"]


def test_doctor_profile_quit_clear(sit: Sit, isolated_home: Path) -> None:
    desk, server = sit([say("x")])
    assert server.base_url in said(desk.do("/doctor"))
    assert server.others == []
    assert "reviewer" in said(desk.do("/profile"))
    assert "reviewer" in [item.text for item in complete("/profile rev", desk)]
    assert "next start" in said(desk.do("/profile reviewer"))
    assert "profile: reviewer" in (isolated_home / "config.yaml").read_text()
    assert desk.do("/profile nosuch").kind == "error"
    desk.do("/clear")
    assert "clear" in desk.screens
    desk.do("/quit")
    assert desk.quits == 1


def test_batch_runs_beside_the_chat(sit: Sit) -> None:
    desk, server = sit([say("<think>r</think>done")])
    assert "No batch runs" in said(desk.do("/batch"))
    Path("my prompts.jsonl").write_text("".join(json.dumps({"prompt": f"p{number}"}) + "\n" for number in range(5)))
    assert [item.text for item in complete("/batch my", desk)] == ["my prompts.jsonl"]
    told = said(desk.do("/batch my prompts.jsonl 2"))
    assert "my-prompts-" in told
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    finished = next(event for event in desk.events if isinstance(event, BatchFinished))
    assert finished.counts["total"] == finished.counts["kept"] == 2
    assert sorted(seen.messages[-1]["content"] for seen in server.requests) == ["p0", "p1"]
    desk.until(lambda: desk.do("/batch").rows[0][1] == "done")
    (row,) = desk.do("/batch").rows
    assert row[:4] == (finished.name, "done", "2/2", "2 kept")
    assert desk.do("/batch nosuch.jsonl").kind == "error"
    assert desk.do("/batch stop nosuch").kind == "error"


def test_batch_takes_the_flags_of_a_run(sit: Sit, tmp_path: Path) -> None:
    desk, server = sit([say("<think>r</think>done")])
    Path("p.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    Path("sampling.json").write_text('{"top_p": 0.5}')
    line = "/batch p.jsonl 1 --run_name night --num-workers=2 --sampling sampling.json -m other --seed 7"
    assert "Batch night runs" in said(
        desk.do(line + " --keep_without_reasoning --filter min_turns:1 --filter finished")
    )
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    told = json.loads(Path("data/night/run.json").read_text())["options"]
    wanted = {
        "num_workers": 2, "sampling": {"top_p": 0.5}, "seed": 7, "max_samples": 1, "keep_without_reasoning": True,
        "filter": ["min_turns:1", "finished"], "model": "other",
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted
    assert told["base_url"] == [server.base_url], "whoever resumes it asks the same server"
    assert [(seen.body["model"], seen.body["top_p"]) for seen in server.requests] == [("other", 0.5)]
    assert [item.text for item in complete("/batch p.jsonl --num-w", desk)] == ["--num_workers "]
    desk.until(lambda: not desk.engine.runs.names)
    assert "Batch night runs" in said(desk.do("/batch --run_name night --resume --max_samples 2"))
    desk.until(lambda: sum(isinstance(event, BatchFinished) for event in desk.events) == 2, 60)
    assert [seen.body["model"] for seen in server.requests] == ["other", "other"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--bogus 3", "there is no flag --bogus"),
        ("--num_worker 3", "did you mean --num_workers?"),
        ("--num_workers", "--num_workers needs a value"),
        ("--num_workers --seed 3", "--num_workers needs a value"),
        ("--num_workers many", "--num_workers: "),
        ("--num_workers 0", "--num_workers: 0 is too small"),
        ("--record=yes", "--record takes no value"),
        ("--sampling [1]", "--sampling: [1] is no JSON object"),
        ("--sampling nosuch.json", "No such file"),
        ("--distribution nosuch", "unknown"),
        ("--max_cost_usd 1", "the price of"),
        ("--api_key sk-secret", "--api_key cannot be given here"),
        ("--run_name 'x", "a quote is not closed"),
        ("--seed 3 stray", "there is no flag stray"),
    ],
)
def test_wrong_flags_of_a_batch_are_named_and_nothing_begins(flags: str, says: str, sit: Sit) -> None:
    desk, server = sit([say("done")])
    Path("p.jsonl").write_text('{"prompt": "one"}\n')
    told = desk.do(f"/batch p.jsonl {flags}")
    assert told.kind == "error"
    assert says in told.text
    assert not desk.engine.runs.names
    assert not Path("data").exists()
    assert not server.requests


@pytest.mark.parametrize("text", ["/new", "/compact", "/agents", "/model x"])
def test_commands_before_a_model_is_set_up_say_so(text: str, tmp_path: Path) -> None:
    desk = Desk(resolve(Overrides(model="demo")), None)
    dispatch(text, desk)
    assert desk.shown == [Output("error", "no model is set up yet")]


def test_run_names_are_safe() -> None:
    assert run_name(Path("a/my prompts (1).jsonl"), 0.0).startswith("my-prompts-1-")
    assert run_name(Path("..jsonl"), 0.0).startswith(("jsonl-", "run-"))
    assert run_name(Path("é" * 300 + ".jsonl"), 0.0).startswith("run-")
