"""Card tools cost tokens in every request: they are on where a person named `kanban`, never through `all` or `*`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.answers import Answer, Seen, call, say

pytestmark = pytest.mark.e2e

ASK = ("chat", "-q", "hi")
RUN = (
    *("batch", "run", "--dataset_file", "d.jsonl", "--batch_size", "1", "--run_name", "r"),
    *("--quiet", "--sandbox", "local", "--keep_without_reasoning"),
)
LISTED = "toolsets: [terminal, file, web, todo, clarify, session_search, delegation, kanban]\n"


def offers(seen: Seen) -> bool:
    """Whether a request has card tools."""
    return any(name.startswith("kanban_") for name in seen.tools)


@pytest.mark.parametrize("everything", ["all", "*"])
@pytest.mark.parametrize(
    ("config", "profile", "words"),
    [
        ("toolsets: ['{}']\n", "", ASK),
        ("toolsets: '{}'\n", "", ASK),
        (LISTED, "toolsets: ['{}']\n", ("-p", "own", *ASK)),
        (LISTED, "", ("-t", "{}", *ASK)),
        (LISTED, "", ("-t", "{}", *RUN)),
    ],
    ids=["a list", "a word", "a profile", "a flag", "rows"],
)
def test_everything_does_not_mean_the_board(
    serve: Serve,
    isolated_home: Path,
    tmp_path: Path,
    everything: str,
    config: str,
    profile: str,
    words: tuple[str, ...],
) -> None:
    server = serve([say("ok")])
    own = isolated_home / "profiles" / "own"
    own.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text(config.format(everything))
    (own / "profile.yaml").write_text("description: mine\n")
    (own / "config.yaml").write_text(profile.format(everything))
    (tmp_path / "d.jsonl").write_text('{"prompt": "a"}\n')
    asked = [word.format(everything) for word in words]
    done = hermes("-m", "m", *asked, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    assert (done.code, len(server.requests)) == (0, 1), done.err
    assert "terminal" in server.requests[0].tools
    assert not offers(server.requests[0])


@pytest.mark.parametrize("row", ['{"prompt": "a", "toolsets": ["all"]}', '{"prompt": "a", "toolsets": ["*"]}'])
def test_a_row_that_wants_everything_has_no_board(serve: Serve, isolated_home: Path, tmp_path: Path, row: str) -> None:
    server = serve([say("ok")])
    isolated_home.mkdir(parents=True, exist_ok=True)
    (isolated_home / "config.yaml").write_text("toolsets: [all, kanban]\n")
    (tmp_path / "d.jsonl").write_text(f"{row}\n")
    hermes("-m", "m", *RUN, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    assert not any(offers(seen) for seen in server.requests)


@pytest.mark.parametrize("name", ["all", "'*'", "kanban"])
def test_no_distribution_draws_the_board(serve: Serve, isolated_home: Path, tmp_path: Path, name: str) -> None:
    server = serve([say("ok")])
    isolated_home.mkdir(parents=True, exist_ok=True)
    (isolated_home / "config.yaml").write_text(LISTED)
    (isolated_home / "distributions.yaml").write_text(f"mine: {{{name}: 100}}\n")
    (tmp_path / "d.jsonl").write_text('{"prompt": "a"}\n')
    words = (*RUN, "--distribution", "mine")
    done = hermes("-m", "m", *words, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    assert (done.code, server.requests, done.err.count("\n")) == (2, [], 1), done.err
    assert "not enabled" not in done.err, "it is enabled, for agents of a board"


@pytest.mark.parametrize(
    ("sets", "has"), [(["all"], False), (["*"], False), (["kanban"], True), (["all", "kanban"], True)]
)
def test_a_child_has_the_board_only_when_it_is_named(
    serve: Serve, isolated_home: Path, tmp_path: Path, sets: list[str], has: bool
) -> None:
    def script(seen: Seen) -> Answer:
        task: dict[str, Any] = {"prompt": "child", "toolsets": sets}
        return call("spawn_agent", task) if len(seen.messages) == 2 and seen.last["content"] == "hi" else say("ok")

    server = serve(script)
    isolated_home.mkdir(parents=True, exist_ok=True)
    (isolated_home / "config.yaml").write_text(LISTED)
    done = hermes("-m", "m", *ASK, cwd=tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    assert done.code == 0, done.err
    assert [offers(seen) for seen in server.requests] == [True, has, True]
