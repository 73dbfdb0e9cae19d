"""Atropos: its server with its own data grabbers as trainers, fed by the program; and its page of a file of groups.

Runs in the environment of atroposlib; the program that feeds has one of its own and is started as a command.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.consumers.readers.common import Case, Task, answer

BIN = Path(sys.executable).parent
SECONDS = 180


def main(task: Task) -> list[Case]:
    """Each trainer with what it wrote."""
    return [
        grabbed(task, "atropos", "atropos-sft-gen"),
        grabbed(task, "atropos-pairs", "atropos-sft-gen"),
        grabbed(task, "atropos-pairs", "atropos-dpo-gen"),
        paged(task, "atropos"),
        paged(task, "atropos-pairs"),
    ]


def grabbed(task: Task, name: str, program: str) -> Case:
    """What a grabber saves of what is fed to it: the scored conversations, or the better and the worse of each pair."""
    groups = [json.loads(line) for line in (task.exports / f"{name}.jsonl").read_bytes().splitlines()]
    size = len(groups[0]["tokens"])
    out = task.work / f"{program}-{name}.jsonl"
    more = ["--tasks-per-step", str(len(groups))] if program == "atropos-sft-gen" else ["--save-n-pairs-per-group", "1"]
    with served() as url:
        flags = ["--api-url", url, "--group-size", str(size), "--max-token-len", "8192", "--tokenizer", task.tokenizer]
        wanted = ["--save-messages", "--num-seqs-to-save", str(len(groups)), *more]
        grabber = subprocess.Popen([str(BIN / program), str(out), *flags, *wanted])
        try:
            feed = json.loads((task.exports / "feed.json").read_text())[name]
            fed = subprocess.run([*feed, "--url", url], capture_output=True, text=True, timeout=SECONDS, check=True)
            code = grabber.wait(SECONDS)
        finally:
            grabber.kill()
    saved = [json.loads(line) for line in out.read_bytes().splitlines()]
    read = [[row["pos"], row["neg"]] if "pos" in row else [row["messages"]] for row in saved]
    best = [[messages for messages, score in by_score(group) if score > 0 or "neg" in saved[0]] for group in groups]
    return {
        "format": name,
        "how": program,
        "rows": len(saved),
        "equal": sum(one == other for one, other in zip(read, best, strict=True)),
        "exit code": code,
        "fed": fed.stdout.splitlines()[-1],
    }


def by_score(group: dict[str, Any]) -> list[tuple[Any, float]]:
    """Its conversations with their scores, best first."""
    pairs: list[tuple[Any, float]] = list(zip(group["messages"], group["scores"], strict=True))
    return sorted(pairs, key=lambda pair: -pair[1])


@contextmanager
def served() -> Iterator[str]:
    """The address of a server of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([str(BIN / "run-api"), "--host", "127.0.0.1", "--port", str(port)])
    try:
        end = time.monotonic() + SECONDS
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(SECONDS)


def paged(task: Task, name: str) -> Case:
    """The groups and conversations on the page that its viewer makes of the export."""
    from atroposlib.frontend.jsonl2html import generate_html

    page = task.work / f"{name}.html"
    generate_html(str(task.exports / f"{name}.jsonl"), str(page))
    text = page.read_text(encoding="utf-8")
    return {
        "format": name,
        "how": "jsonl2html",
        "rows": len(re.findall(r"<summary>Group \d+</summary>", text)),
        "conversations": len(re.findall(r'id="group-\d+-item-\d+"', text)),
    }


if __name__ == "__main__":
    answer(main)
