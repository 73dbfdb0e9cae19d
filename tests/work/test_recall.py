"""Tool `session_search`: an agent looks into a person's earlier chats; rows of a batch run never do."""

from __future__ import annotations

import json
from pathlib import Path

from tests.batch.served import run
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.scripted import call, say
from tests.work.test_rows import row


def test_an_agent_finds_what_was_said_in_an_earlier_chat(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("It is 4711."), call("session_search", {"query": "number gate"}), say("4711")])
    flags = ("--base-url", server.base_url, "-m", "m", "-t", "session_search")
    assert hermes("chat", "-q", "Which number has the gate?", *flags, cwd=tmp_path).code == 0
    done = hermes("chat", "-q", "And again?", *flags, cwd=tmp_path)
    assert (done.code, done.out.strip()) == (0, "4711")
    assert server.requests[0].tools == ["session_search"]
    told = server.requests[2].last["content"]
    assert told.startswith("[1 earlier chats hold these words")
    assert "Which number has the gate?" in told


def test_rows_have_no_such_tool(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: say("Done.", "I thought."))
    done = run(tmp_path, server, [row("plain"), {"prompt": "asks", "toolsets": ["session_search"]}])
    assert done.counts == {"total": 2, "kept": 1, "invalid": 1}
    assert "session_search" not in json.dumps([seen.tools for seen in server.requests])
