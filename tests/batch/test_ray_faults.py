"""`--engine ray` when things end or fail: the program killed or interrupted, a server down. Real processes only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.batch.ray_cluster import Cluster, wait_until
from tests.batch.ray_runs import OnRay
from tests.batch.served import prompt_of, results_in
from tests.batch.support import dataset, read_rows
from tests.batch.test_ray_alone import kept, of_this_test
from tests.batch.test_server import free_port
from tests.conftest import Serve
from tests.e2e.program import hermes, start
from tests.server.scripted import Answer, ScriptedServer, Seen, hang, say
from tests.server.tokens import Said, TokenModel

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(400)]

KEY = "sk-for-the-rows-0123456789"


def flags(cluster: Cluster, *more: str) -> list[str]:
    given = ["--dataset_file", "d.jsonl", "--batch_size", "7", "--run_name", "r", "--model", "m", "--sandbox", "local"]
    return ["batch", "run", *given, "--engine", "ray", "--ray_address", cluster.address, "--plain", *more]


def begun(cluster: Cluster, server: ScriptedServer, cwd: Path, *more: str) -> subprocess.Popen[bytes]:
    """The program at work."""
    return start(*flags(cluster, *more), cwd=cwd, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=KEY)


def prompts_kept(cwd: Path) -> list[str]:
    """Prompts of kept rows, as they ended."""
    return [json.loads(line)["conversations"][0]["value"] for line in kept(cwd)]


def nobody_works(cluster: Cluster) -> None:
    """Neither the program, nor what speaks with Ray for it, nor a process for its rows is left."""
    wait_until(lambda: not any(map(cluster.working, cluster.nodes)))
    wait_until(lambda: not of_this_test())


def test_f1_3_a_driver_that_is_killed_loses_nothing_and_is_watched_to_its_end(
    serve: Serve, tmp_path: Path, cluster: Cluster
) -> None:
    server = serve(lambda seen: say(f"Yes, {prompt_of(seen)}.", "hm", first_delay=0.2))
    prompts = [f"p{number}" for number in range(30)]
    dataset(tmp_path / "d.jsonl", prompts)
    work = begun(cluster, server, tmp_path, "--num_workers", "4", "--fsync", "row")
    wait_until(lambda: (tmp_path / "data" / "r" / "run.json").exists())
    watch = start("batch", "watch", "r", "--json", cwd=tmp_path)
    wait_until(lambda: len(kept(tmp_path)) >= 10)
    work.kill()
    work.communicate()
    nobody_works_but_the_watch(cluster, watch)
    before, calls = prompts_kept(tmp_path), len(server.requests)
    assert len(before) < 30
    assert calls <= len(before) + 4
    out, err = watch.communicate(timeout=60)
    seen = [json.loads(line) for line in out.splitlines()]
    assert (seen[0]["state"], seen[-1]["state"], watch.returncode) == ("running", "killed", 1), err
    assert seen[-1]["rows"]["total"] == 30
    again = hermes(
        *flags(cluster, "--resume"), cwd=tmp_path, timeout=200, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=KEY
    )
    assert again.code == 0, again.err
    rows = read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")
    assert Counter(row["conversations"][0]["value"] for row in rows) == Counter(prompts)
    assert Counter(prompts_kept(tmp_path)) == Counter(prompts)
    assert len(server.requests) <= 30 + 4
    figures = json.loads((tmp_path / "data" / "r" / "statistics.json").read_bytes())
    assert (figures["rows"]["kept"], figures["invocations"]) == (30, 2)
    nobody_works(cluster)


def nobody_works_but_the_watch(cluster: Cluster, watch: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: not any(map(cluster.working, cluster.nodes)))
    wait_until(lambda: {process.pid for process in of_this_test()} <= {watch.pid})


def test_f1_8_the_first_interrupt_drains_and_the_second_ends_at_once(
    serve: Serve, tmp_path: Path, cluster: Cluster
) -> None:
    def script(seen: Seen) -> Answer:
        return hang(60) if prompt_of(seen).startswith("silent") else say("Yes.", "hm", first_delay=1)

    server = serve(script)
    dataset(tmp_path / "d.jsonl", [*(f"p{number}" for number in range(12)), "silent 1", "silent 2"])
    work = begun(cluster, server, tmp_path, "--num_workers", "3", "--max_samples", "12")
    wait_until(lambda: len(server.requests) >= 5 and server.open_requests >= 2)
    work.send_signal(signal.SIGINT)
    began, asked = time.monotonic(), len(server.requests)
    _out, err = work.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert work.returncode == 130
    assert err.decode().splitlines()[-1] == "go on with: hermes batch run --resume --run_name r"
    assert asked <= len(server.requests) <= asked + 3
    assert len(kept(tmp_path)) == len(server.requests), "rows in flight ended by themselves"
    nobody_works(cluster)
    work = begun(cluster, server, tmp_path, "--resume", "--num_workers", "3", "--max_samples", "14")
    wait_until(lambda: server.open_requests == 2 and len(kept(tmp_path)) == 12)
    for _ in range(2):
        work.send_signal(signal.SIGINT)
        time.sleep(0.5)  # two presses of a person, not one that the terminal repeats
    began = time.monotonic()
    work.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert work.returncode == 130
    nobody_works(cluster)
    wait_until(lambda: server.open_requests == 0)
    assert len(kept(tmp_path)) == 12


def test_replicas_have_their_own_keys_figures_and_tokens_and_one_that_is_down_is_told_once(
    serve: Serve, tmp_path: Path, cluster: Cluster
) -> None:
    def works(seen: Seen) -> Said:
        if results_in(seen):
            return Said("Done.", "I know.")
        return Said("", "I look.", [("terminal", {"command": "true"})])

    servers = [serve(TokenModel(works)), serve(TokenModel(works, "silent"))]
    urls = [server.base_url for server in servers] + [f"http://127.0.0.1:{free_port()}/v1"]
    keys = [f"sk-{name}-0123456789" for name in ("first", "second", "third")]
    prompts = [f"p{number}" for number in range(20)]
    given = {"base_url": urls, "api_key": keys, "record_tokens": True, "num_workers": 6}
    work = OnRay(tmp_path, cluster, servers[0], prompts, **given)
    done = work.end()
    assert done.counts == {"total": 20, "kept": 20}
    for server, key in zip(servers, keys, strict=False):
        assert {seen.headers["authorization"] for seen in server.requests} == {f"Bearer {key}"}
    figures = done.statistics["replicas"]
    assert [item["base_url"] for item in figures] == urls
    assert [item["requests"] for item in figures[:2]] == [len(server.requests) for server in servers]
    assert [item["rows"] for item in figures] == [len(server.requests) // 2 for server in servers] + [0]
    assert [item["up"] for item in figures] == [True, True, False]
    whole = len(servers[0].requests) // 2
    assert done.statistics["tokens"] == {"rows": whole, "without": 20 - whole}
    assert work.told.count("--record_tokens") == 1
    assert work.told.count("its rows go to the other servers") <= 1
    for path in (*done.folder.iterdir(), Path(os.environ["HERMES_HOME"]) / "logs" / "ray.log"):
        assert not any(key.encode() in path.read_bytes() for key in keys), path
