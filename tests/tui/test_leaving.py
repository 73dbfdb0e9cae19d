"""The ways out: Ctrl+C and Ctrl+D by what is going on, the question, and faults that end the app."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import threading
from contextlib import closing
from pathlib import Path

import pytest
from textual import events

from hermes_engine.paths import Home
from hermes_engine.session import AgentRow
from hermes_engine.store.agents import AgentStore
from hermes_engine.store.migrations import open_state
from hermes_tui.leaving_behind import LOG, goes_on, left_words
from hermes_tui.running import loader_of, peeked_theme
from hermes_tui.screens import leaving
from hermes_tui.screens.chat.sending import BACK_SECONDS
from hermes_tui.screens.overlays.quitting import _line
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, hang, say
from tests.tui.drawing import LOOK
from tests.tui.live import live, settings
from tests.tui.stage import StageApp, screen_text, settle, stage
from tests.work.support import by_prompt


class Clock:
    """A clock the test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(leaving, "time", made)
    return made


async def test_f9_4_ctrl_c_on_nothing_asks_for_a_second_one(clock: Clock) -> None:
    async with stage() as (app, pilot):
        await pilot.press("ctrl+c")
        assert "Ctrl+C again to quit" in screen_text(app)
        clock.now += leaving.AGAIN_SECONDS + 0.1
        await pilot.press("ctrl+c")
        assert app.return_code is None
        clock.now += leaving.AGAIN_SECONDS - 0.1
        await pilot.press("ctrl+c")
        assert app.return_code == 0


async def test_f9_4_ctrl_c_puts_the_draft_aside(clock: Clock) -> None:
    async with stage() as (app, pilot):
        await pilot.press(*"half a thought", "ctrl+c")
        assert app.chat.prompt.empty
        assert "↑ brings it back" in screen_text(app)
        await pilot.press("up")
        assert app.chat.prompt.text == "half a thought"
        await pilot.press("ctrl+d")
        assert app.return_code is None, "ctrl+d deletes while something is written"


async def test_ctrl_d_on_nothing_leaves() -> None:
    async with stage() as (app, pilot):
        await pilot.press("ctrl+d")
        assert app.return_code == 0


async def test_leaving_while_a_turn_runs_is_a_question(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(20)])), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        await app.pilot.press("4")
        await app.until(lambda: len(app.app.screen_stack) == 1)
        assert app.app.return_code is None
        assert app.desk.busy
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        await app.pilot.press("ctrl+c")
        await app.until(lambda: app.app.return_code == 0)


async def test_leaving_can_wait_for_the_end(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(1.0)])), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        await app.pilot.press("2")
        assert app.app.return_code is None
        await app.shows("quits when it is done · Esc keeps it open")
        await app.until(lambda: app.app.return_code == 0)


async def test_what_is_left_working_goes_on_in_a_process_of_its_own(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"hello": say("hi"), "look": hang(60)}))
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("hello")
        await app.shows("hi")
        await app.idle()
        session = app.desk.session
        await app.say("/background look around")
        await app.until(lambda: len(server.requests) == 2)
        await app.pilot.press("ctrl+d")
        await app.shows("look around")
        await app.shows("Leave it working and quit")
        server.script = by_prompt({"look": say("brought it")})
        await app.pilot.press("3")
        await app.until(lambda: app.app.return_code == 0)
    with closing(open_state(Home.from_env().state_db)) as database:
        agents = AgentStore(database)
        came = await asyncio.to_thread(server.wait_until, lambda: bool(agents.unseen(session)), 30)
        assert came, (Home.from_env().logs / LOG).read_text()
        states = {record.state: record.answer for record in agents.list(kinds=("background",))}
        assert states == {"handed over": "", "done": "brought it"}
    asked = [message["content"] for message in server.requests[-1].messages if message["role"] == "user"]
    assert asked == ["look around"]
    async with live(settings(server), tmp_path, continue_last=True) as app:
        await app.shows("brought it")


@pytest.mark.parametrize("what", ["stop", "leave"])
async def test_when_the_terminal_goes_work_is_stopped_or_left_as_set(what: str, serve: Serve, tmp_path: Path) -> None:
    Home.from_env().ensure().config.write_text(f"ui: {{on_hangup: {what}}}\n")
    server = serve(by_prompt({"look": hang(60)}))
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("/background look around")
        await app.until(lambda: server.requests)
        server.script = by_prompt({"look": say("brought it")})
        os.kill(os.getpid(), signal.SIGHUP)
        await app.until(lambda: app.app.return_code == 129)
    with closing(open_state(Home.from_env().state_db)) as database:
        agents = AgentStore(database)
        end = "done" if what == "leave" else "cancelled"
        came = await asyncio.to_thread(server.wait_until, lambda: end in states_of(agents), 30)
        assert came, (Home.from_env().logs / LOG).read_text()
        assert states_of(agents) == ({"handed over", "done"} if what == "leave" else {"cancelled"})


def states_of(agents: AgentStore) -> set[str]:
    return {record.state for record in agents.list(kinds=("background",))}


@pytest.mark.parametrize("keys", [("1", "1"), ("enter", "enter"), ("1", "enter", "2", "escape")])
async def test_one_choice_leaves_whatever_keys_follow(keys: tuple[str, ...], serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(60)])), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        for key in keys:  # all of them before the app handles the first
            app.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await app.until(lambda: app.app.return_code is not None)
        assert (app.app.return_code, app.app.failure) == (0, None)


async def test_space_chooses_nothing(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(60)])), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        await app.pilot.press("space", "space")
        assert "1 thing still runs" in app.screen
        assert app.app.return_code is None


async def test_the_question_follows_what_runs_to_its_end(serve: Serve, tmp_path: Path) -> None:
    gone = threading.Event()

    def found(seen: Seen) -> Answer:
        gone.wait(30)
        return say("found it")

    server = serve(by_prompt({"go": hang(60), "look": found}))
    async with live(settings(server), tmp_path, width=110) as app:
        await app.ready()
        await app.say("/background look around")
        await app.until(lambda: server.requests)
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("2 things still run")
        line = next(line for line in app.screen.split("\n") if "look around" in line)
        assert line.split("│")[1].split("  ")[0].strip() == "look"
        assert "what it would ask is denied" in app.screen
        gone.set()
        await app.shows("1 thing still runs")
        app.desk.engine.interrupt(app.desk.session)  # type: ignore[union-attr]
        await app.shows("Nothing runs any more")
        assert "Stop and quit" not in app.screen
        await app.pilot.press("1")
        await app.until(lambda: app.app.return_code == 0)


def test_what_cannot_be_left_working_is_said() -> None:
    rows = [
        AgentRow("a", name="main"),
        AgentRow("b", name="child", kind="child", bound=True),
        AgentRow("c", name="evals", kind="batch"),
    ]
    assert [goes_on(row) for row in rows] == [True, False, False]
    words = left_words(rows)
    assert "denied" in words[0]
    assert "that turn starts it again" in words[1]
    assert "`hermes batch run --resume --run_name evals` goes on" in words[2]
    assert len(left_words(rows[:1])) == 1


def test_a_batch_run_is_named_once() -> None:
    run = AgentRow("c", name="evals", title="evals", kind="batch", activity="40% 16/40")
    assert _line(run, 60, LOOK, tells=False).plain.split() == ["evals", "batch", "run", "40%", "16/40"]
    long = dataclasses.replace(run, name="a-very-long-name-of-it", title="a-very-long-name-of-it")
    assert "a-very-long-name-of-it" in _line(long, 90, LOOK, tells=False).plain


async def test_esc_keeps_open_what_would_close_when_it_is_done(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(60)])), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press("ctrl+d")
        await app.shows("1 thing still runs")
        await app.pilot.press("2")
        await app.shows("Esc keeps it open")
        await app.pilot.press("escape")
        await app.shows("Esc stops")
        assert "quits when" not in app.screen
        assert app.desk.busy
        await asyncio.sleep(BACK_SECONDS)
        await asyncio.sleep(BACK_SECONDS)  # so long Esc stops nothing after the question was closed
        await app.pilot.press("escape")
        await app.idle()
        app.app.leaving.done()
        assert app.app.return_code is None


async def test_f9_3_an_error_nobody_expected_ends_the_app_with_a_line_and_a_log() -> None:
    app: StageApp
    with pytest.raises(ZeroDivisionError):
        async with stage() as (app, pilot):

            def broken() -> None:
                secret = "sk-value-of-a-variable"
                raise ZeroDivisionError(f"broken by the test {len(secret)}")

            app.call_later(broken)
            await settle(pilot)
    assert app.failure is not None
    assert "an unexpected error ended the app: broken by the test" in app.failure.line
    log = Home.from_env().logs / "app.log"
    assert "ZeroDivisionError: broken by the test" in log.read_text()
    assert "sk-value" not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_theme_is_seen_at_a_glance() -> None:
    home = Home.from_env().ensure()
    assert peeked_theme() == "terminal"
    home.config.write_text("model: x\nui:\n  motion: true\n  theme: 'nord'  # mine\nweb:\n  theme: no\n")
    assert peeked_theme() == "nord"
    home.config.write_text("model: x\nweb:\n  theme: no\n")
    assert peeked_theme() == "terminal"


def test_given_settings_are_read_again_after_a_set_up() -> None:
    resolved = settings()()
    load = loader_of(resolved)
    assert load() is resolved
    again = load()
    assert again is not resolved
    assert again.settings.model == resolved.settings.model
