"""Other batch engines as contenders: each from its registry into an environment of its own, outside this tree.

What is here is how they are called and how their results are read. Their cost is their own: default settings, a clean
home, the same prompts and server, and as many commands as the model calls for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.place import Place
from bench.processes import Run
from bench.processes import run as run_process
from bench.rounds import say

INSTALL_SECONDS = 1200


class NotHere(RuntimeError):
    """Why a peer cannot be measured on this machine."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a peer is to do.

    Attributes:
        base_url: the server.
        prompts: JSONL with a key `prompt`.
        rows: of them.
        rounds: commands that each must have run.
        in_flight: at once, where that can be said.
    """

    base_url: str
    prompts: Path
    rows: int
    rounds: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Peer:
    """One of them.

    Attributes:
        name, version: of its distribution.
        work: runs a task in an environment (its Python is `bin/python`) and checks what came of it.
        beside: further requirements.
    """

    name: str
    version: str
    work: Callable[[Path, Place, Task], Run]
    beside: tuple[str, ...] = field(default=())

    def environment(self) -> Path:
        """Its environment, made when it is not there yet. Raises NotHere."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-bench"
        folder = cache / f"{self.name}-{self.version}"
        complete = folder / "complete"
        if complete.exists():
            return folder
        say(f"installing {self.name} {self.version} into {folder}")
        python = folder / "bin" / "python"
        pip: list[str | Path] = [python, "-m", "pip", "install", "-q", f"{self.name}=={self.version}", *self.beside]
        cache.mkdir(parents=True, exist_ok=True)
        for command in ([sys.executable, "-m", "venv", "--clear", folder], pip):
            try:
                subprocess.run(
                    list(map(str, command)), check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS
                )
            except subprocess.CalledProcessError as error:
                raise NotHere((error.stderr.strip() or error.stdout.strip() or str(error)).splitlines()[-1]) from None
            except (OSError, subprocess.TimeoutExpired) as error:
                raise NotHere(str(error)) from None
        complete.touch()
        return folder


def _env(environment: Path, place: Place, more: Mapping[str, str]) -> dict[str, str]:
    """A clean one: nothing of ours can be imported there."""
    clean = place.env(**more)
    del clean["PYTHONPATH"]
    return {**clean, "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _hermes_agent(environment: Path, place: Place, task: Task) -> Run:
    """Its `batch_runner` with the number of workers it has by itself: with more, each prompt costs it more."""
    folder = place.folder("hermes-agent")
    flags = {
        "dataset_file": task.prompts,
        "batch_size": 5,
        "run_name": "bench",
        "distribution": "terminal_only",
        "model": "bench",
        "base_url": task.base_url,
        "api_key": "none",
        "max_turns": 50,
        "num_workers": 4,
    }
    command: list[str | Path] = [environment / "bin" / "python", "-m", "batch_runner"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    env = _env(environment, place, {"OPENAI_API_KEY": "none"})
    done = run_process(command, env=env, cwd=folder, log=place.root / "hermes-agent.log", timeout=1200)
    lines = (folder / "data" / "bench" / "trajectories.jsonl").read_text("utf-8").splitlines()
    rows = {record["prompt_index"]: record for record in map(json.loads, lines)}
    outputs = {number: [turn["value"] for turn in row["conversations"]] for number, row in rows.items()}
    if sorted(rows) != list(range(task.rows)) or len(lines) != task.rows:
        raise RuntimeError(f"hermes-agent kept {len(lines)} rows of {task.rows}")
    _check("hermes-agent", outputs, task.rounds)
    return done


_INSPECT = """
import json
from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.tool import bash, tool_with

@task
def bench(prompts):
    with open(prompts) as lines:
        samples = [Sample(id=n, input=json.loads(line)["prompt"]) for n, line in enumerate(lines)]
    solver = react(tools=[tool_with(bash(), name="terminal")], submit=False)
    return Task(dataset=samples, solver=solver, sandbox="local")
"""


def _inspect(environment: Path, place: Place, task: Task) -> Run:
    folder = place.folder("inspect")
    (folder / "task.py").write_text(_INSPECT, encoding="utf-8")
    inspect = environment / "bin" / "inspect"
    flags = {
        "model": "openai-api/bench/bench",
        "model-base-url": task.base_url,
        "max-connections": task.in_flight,
        "max-samples": task.in_flight,
        "max-subprocesses": task.in_flight,
        "display": "none",
        "log-dir": folder / "logs",
    }
    command: list[str | Path] = [inspect, "eval", "task.py", "-T", f"prompts={task.prompts}"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    env = _env(environment, place, {"BENCH_API_KEY": "none"})
    done = run_process(command, env=env, cwd=folder, log=place.root / "inspect.log", timeout=1200)
    (log,) = (folder / "logs").iterdir()
    dump = run_process([inspect, "log", "dump", log], env=env, cwd=folder, log=place.root / "dump.log")
    told = json.loads(dump.output)
    samples = {sample["id"]: [message["content"] for message in sample["messages"]] for sample in told["samples"]}
    if told["status"] != "success" or sorted(samples) != list(range(task.rows)):
        raise RuntimeError(f"Inspect ended with {told['status']} and {len(samples)} of {task.rows} samples")
    _check("Inspect", samples, task.rounds)
    return done


def _check(name: str, rows: Mapping[int, list[Any]], rounds: int) -> None:
    """Each conversation holds the output of each of its commands."""
    for index, texts in rows.items():
        outputs = [text for text in texts if isinstance(text, str) and "part-" in text and "echo" not in text]
        if len(outputs) != rounds or any(f"part-{at}" not in text for at, text in enumerate(outputs)):
            raise RuntimeError(f"{name}: row {index} has {len(outputs)} right outputs of {rounds}: {texts}")


PEERS = (
    Peer("hermes-agent", "0.19.0", _hermes_agent),
    Peer("inspect-ai", "0.3.285", _inspect, ("openai==3.57.0",)),
)
