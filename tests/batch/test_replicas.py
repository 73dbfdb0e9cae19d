"""Several servers of one model: rows stay with one, leave it while it is down, and come back."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch import health
from hermes_engine.batch.folder import RunFolder, read_object
from hermes_engine.batch.joining import join
from hermes_engine.batch.runner import BatchRun
from hermes_engine.clients import replicas
from hermes_engine.events import Event, Notice, RowFinished
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.served import Batch, prompt_of, results_in, run
from tests.batch.support import dataset, options
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.scripted import Answer, ScriptedServer, Seen, call, say, status

PROMPTS = [f"p{number}" for number in range(24)]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FIRST_WAIT", 0.05)
    monkeypatch.setattr(replicas, "_FIRST_WAIT", 0.05)
    monkeypatch.setattr("random.uniform", lambda low, high: low / 20)


def lists(seen: Seen) -> Answer:
    """One command, then an answer: several requests a row."""
    if not results_in(seen):
        return call("terminal", {"command": "true"}, reasoning="hm")
    return say("Yes.", "hm")


def rows_of(server: ScriptedServer) -> set[str]:
    """The prompts a server was asked about."""
    return {prompt_of(seen) for seen in server.requests} - {"Hello"}


def told(done: Batch) -> list[str]:
    return [event.text for event in done.events if isinstance(event, Notice) and "server" in event.text]


def test_all_requests_of_a_row_go_to_one_server_also_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(lists), serve(lists)]
    urls = [server.base_url for server in servers]
    done = run(tmp_path, "", PROMPTS, base_url=urls)
    assert done.counts == {"total": 24, "kept": 24}
    first, second = map(rows_of, servers)
    assert not first & second
    assert min(len(first), len(second)) >= 4, "both have their part"
    figures = done.statistics["replicas"]
    assert [item["base_url"] for item in figures] == urls
    assert [item["rows"] for item in figures] == [len(first), len(second)]
    assert [item["requests"] for item in figures] == [2 * len(first), 2 * len(second)]
    assert [(item["up"], item["downs"]) for item in figures] == [(True, 0)] * 2
    again = run(tmp_path, "", run_name="again", base_url=list(reversed(urls)))
    assert again.counts == {"total": 24, "kept": 24}
    assert [rows_of(server) for server in servers] == [first, second]
    endpoint = (done.folder / "run.json").read_text()
    assert all(url in endpoint for url in urls)


def test_a_server_more_takes_rows_and_moves_no_other(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(lists) for _ in range(3)]
    urls = [server.base_url for server in servers]
    run(tmp_path, "", PROMPTS, base_url=urls[:2])
    before = [rows_of(server) for server in servers]
    for server in servers:
        server.requests.clear()
    run(tmp_path, "", run_name="more", base_url=urls)
    now = [rows_of(server) for server in servers]
    assert now[2]
    assert now[0] <= before[0]
    assert now[1] <= before[1]


@pytest.mark.parametrize(
    "fault", [None, status(503, "busy"), status(500, "Loading model")], ids=["refused", "503", "loading"]
)
def test_a_server_that_is_down_from_the_beginning_costs_no_row_and_no_pause(
    serve: Serve, tmp_path: Path, fault: Answer | None
) -> None:
    good, bad = serve(lists), serve([fault or say("x")])
    if fault is None:
        bad.close()
    done = run(tmp_path, "", PROMPTS, base_url=[bad.base_url, good.base_url], num_workers=6)
    assert done.counts == {"total": 24, "kept": 24}
    assert rows_of(good) == set(PROMPTS)
    figures = done.statistics["replicas"]
    assert [item["rows"] for item in figures] == [0, 24]
    assert (figures[0]["up"], figures[0]["downs"]) == (False, 1)
    assert not any("the run waits" in text for text in told(done))
    assert {row["api_calls"] - row["retries"] for row in done.rows()} == {2}


def test_a_server_killed_in_mid_run_and_brought_back(serve: Serve, tmp_path: Path) -> None:
    """Its rows go to the other, none is lost; back at its address it gets new rows; rows that moved stay moved."""
    victim = ScriptedServer(lists).start()
    gone, revived = threading.Event(), threading.Event()

    def slow(seen: Seen) -> Answer:
        return lists(seen) if revived.is_set() else say("Yes.", "hm", first_delay=0.05)

    good = serve(slow)
    port, urls = victim.port, [victim.base_url, good.base_url]
    back: list[ScriptedServer] = []
    ended: Counter[str] = Counter()
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        if isinstance(event, RowFinished):
            ended[event.outcome] += 1
            if ended["kept"] == 10 and not gone.is_set():
                gone.set()
                victim.close()
        if isinstance(event, Notice) and "its rows go to the other servers" in event.text:
            back.append(ScriptedServer(lists, port=port).start())
        if isinstance(event, Notice) and "is back after" in event.text:
            revived.set()

    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(120)])
    given = options(tmp_path, model="scripted", base_url=urls, num_workers=2)
    done = Batch(BatchRun(given, resolve(Overrides()), hear).run(), events)
    try:
        assert done.counts == {"total": 120, "kept": 120}
        assert rows_of(victim), "it had rows before"
        assert revived.is_set()
        assert rows_of(back[0]), "and has rows again"
        figures = done.statistics["replicas"]
        assert sum(item["rows"] for item in figures) == 120
        assert figures[0]["up"]
        assert figures[0]["downs"] >= 1
        assert not any("the run waits" in text for text in told(done))
        assert len({row["metadata"]["row_id"] for row in done.rows()}) == 120
    finally:
        back[0].close()


def test_the_run_pauses_only_when_all_are_down_and_goes_on_with_the_first_that_is_back(
    serve: Serve, tmp_path: Path
) -> None:
    servers = [ScriptedServer(lists).start() for _ in range(2)]
    ports = [server.port for server in servers]
    for server in servers:
        server.close()
    back: list[ScriptedServer] = []
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        if isinstance(event, Notice) and "the run waits for the server" in event.text:
            back.append(ScriptedServer(lists, port=ports[1]).start())

    dataset(tmp_path / "prompts.jsonl", PROMPTS)
    urls = [f"http://127.0.0.1:{port}/v1" for port in ports]
    given = options(tmp_path, model="scripted", base_url=urls)
    done = Batch(BatchRun(given, resolve(Overrides()), hear).run(), events)
    try:
        assert done.counts == {"total": 24, "kept": 24}
        assert rows_of(back[0]) == set(PROMPTS)
        assert any("the server is back" in text for text in told(done))
    finally:
        back[0].close()


def test_all_down_for_too_long_ends_the_run_with_its_rows_pending(tmp_path: Path) -> None:
    closed = [ScriptedServer(lists).start() for _ in range(2)]
    for server in closed:
        server.close()
    urls = [server.base_url for server in closed]
    done = run(tmp_path, "", PROMPTS, base_url=urls, endpoint_wait=0.3)
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)
    assert done.counts == {"total": 24, "pending": 24}


def test_a_row_that_no_server_takes_fails_and_holds_nobody_up(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        return status(503, "busy") if prompt_of(seen) == "bad" else lists(seen)

    servers = [serve(script), serve(script)]
    urls = [server.base_url for server in servers]
    done = run(tmp_path, "", [*PROMPTS, "bad"], base_url=urls, num_workers=4)
    assert done.counts == {"total": 25, "kept": 24, "failed": 1}
    assert all("bad" in rows_of(server) for server in servers)


def test_each_server_gets_its_own_key_and_no_file_holds_one(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(lists), serve(lists)]
    keys = ["sk-first-0123456789", "sk-second-0123456789"]
    urls = [server.base_url for server in servers]
    done = run(tmp_path, "", [*PROMPTS, f"say {keys[1]}"], base_url=urls, api_key=keys)
    assert done.counts == {"total": 25, "kept": 25}
    for server, key in zip(servers, keys, strict=True):
        assert {seen.headers.get("authorization") for seen in server.requests} == {f"Bearer {key}"}
    for path in done.folder.iterdir():
        assert not any(key.encode() in path.read_bytes() for key in keys), path


def test_figures_are_of_all_invocations(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-0123456789")
    servers = [serve(lists), serve(lists)]
    urls = [server.base_url for server in servers]
    run(tmp_path, "", PROMPTS, base_url=urls, max_samples=12)
    done = run(tmp_path, "", resume=True, max_samples=24)
    figures = done.statistics["replicas"]
    assert sum(item["rows"] for item in figures) == 24
    assert [item["requests"] for item in figures] == [len(server.requests) for server in servers]
    assert all("authorization" not in seen.headers for server in servers for seen in server.requests)
    third = serve(lists)
    more: dict[str, Any] = {"resume": True, "base_url": third.base_url}
    with (tmp_path / "prompts.jsonl").open("a") as stream:
        stream.write('{"prompt": "one more"}\n')
    last = run(tmp_path, "", max_samples=25, **more)
    assert [item["base_url"] for item in last.statistics["replicas"]] == urls
    assert last.counts == {"total": 25, "kept": 25}


def test_what_each_server_got_is_told_of_a_run_and_of_one_that_shards_became(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(lists), serve(lists)]
    urls = [server.base_url for server in servers]
    parts = [run(tmp_path, "", PROMPTS, base_url=urls, run_name=f"p{part}", shard=f"{part}/2") for part in (1, 2)]
    target = RunFolder(tmp_path / "data" / "all")
    join(target, [RunFolder(part.folder) for part in parts], resolve(Overrides()))
    figures = read_object(target.statistics)["replicas"]
    assert [(item["base_url"], item["up"], item["in_flight"]) for item in figures] == [(url, True, 0) for url in urls]
    assert [item["requests"] for item in figures] == [len(server.requests) for server in servers]
    assert [item["rows"] for item in figures] == [len(rows_of(server)) for server in servers]
    shown = hermes("batch", "show", "all", cwd=tmp_path)
    told = [f"{url} {item['rows']} rows, {item['requests']} requests" for url, item in zip(urls, figures, strict=True)]
    assert f"servers\t{' · '.join(told)}\n" in shown.out
