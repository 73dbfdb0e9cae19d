"""The embedded demo model: labelled, deterministic, honest about what tools said; offers only what is on offer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import make_client
from hermes_engine.clients.demo import WINDOW, DemoClient
from hermes_engine.clients.demo_code import FALLBACK, SNIPPETS
from hermes_engine.clients.demo_scenes import spanish
from hermes_engine.clients.demo_texts import LABEL
from hermes_engine.errors import ContextTooLong, EndpointDown, KeyRefused, RateLimited, RequestRejected, ServerFault
from hermes_engine.messages import Message, Reply, assistant, tool_message, user
from hermes_engine.protocols import ModelRequest, ToolSchema
from hermes_engine.settings import Endpoint, ProviderSettings
from tests.clients.test_openai_client import Heard

ALL = ("terminal", "process", "read_file", "write_file", "patch", "search_files", "todo", "clarify", "spawn_parallel")


def tools(*names: str) -> list[ToolSchema]:
    """Definitions of tools with these names."""
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


def shell(command: str, cwd: Path) -> str:
    """What a terminal tool would give back."""
    ran = subprocess.run(["bash", "-c", command], cwd=cwd, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


async def turn(prompt: str, cwd: Path, *names: str, seed: int = 0, history: tuple[Message, ...] = ()) -> list[Message]:
    """A whole turn: the model's calls answered by real commands and files."""
    client = DemoClient(seed, paced=False)
    messages = [*history, user(prompt)]
    for _ in range(6):
        reply = await client.complete(ModelRequest("demo", messages, tools(*names)))
        messages.append(assistant(reply))
        if not reply.tool_calls:
            return messages
        for call in reply.tool_calls:
            assert call.name in names
            values = call.parsed()
            assert values is not None
            match call.name:
                case "terminal":
                    result = shell(values["command"], cwd)
                case "read_file":
                    result = (cwd / values["path"]).read_text()
                case "write_file":
                    (cwd / values["path"]).write_text(values["content"])
                    result = f"wrote {values['path']}"
                case "search_files":
                    result = "\n".join(sorted(path.name for path in cwd.iterdir()))
                case _:
                    result = json.dumps(values)
            messages.append(tool_message(call, result))
    raise AssertionError("the demo model never came to an end")


def called(messages: list[Message]) -> list[str]:
    """Names of all tools called."""
    return [call.name for message in messages for call in message.tool_calls]


async def test_it_is_labelled_once_a_conversation(tmp_path: Path) -> None:
    first = await turn("hello", tmp_path)
    assert first[-1].content.startswith(f"_{LABEL}_")
    second = await turn("and now?", tmp_path, history=tuple(first))
    assert LABEL not in second[-1].content


async def test_plain_chat_shows_markdown_and_reasoning(tmp_path: Path) -> None:
    answer = (await turn("tell me about ducks", tmp_path))[-1]
    for mark in ("## tell me about ducks", "\n- ", "```python", "|---|"):
        assert mark in answer.content
    assert answer.reasoning
    spanish_answer = (await turn("¿qué sabes de los patos?", tmp_path))[-1]
    assert "mis respuestas están escritas" in spanish_answer.content


@pytest.mark.parametrize(
    "prompt",
    ["list the files here", "what is in this folder?", "lista los archivos de aquí", "¿qué hay en la carpeta?"],
)
@pytest.mark.parametrize("seed", range(4))
async def test_questions_about_files_are_answered_from_the_real_listing(prompt: str, seed: int, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# The duck book\n")
    (tmp_path / "README.es.md").write_text("# El libro de los patos\n")
    (tmp_path / "odd name.txt").write_text("x")
    (tmp_path / "src").mkdir()
    messages = await turn(prompt, tmp_path, *ALL, seed=seed)
    assert called(messages)[0] == "terminal"
    answer = messages[-1].content
    for name in ("`README.md`", "`odd name.txt`", "`src/`"):
        assert name in answer
    assert ("# The duck book" in answer) is ("read_file" in called(messages))
    assert ("archivos" in answer) is spanish(prompt)


async def test_without_a_terminal_files_are_searched(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    messages = await turn("list the files", tmp_path, "search_files")
    assert called(messages) == ["search_files"]
    assert "`a.txt`" in messages[-1].content


async def test_a_refused_call_is_told_as_it_is() -> None:
    client = DemoClient(paced=False)
    messages = [user("list the files here")]
    reply = await client.complete(ModelRequest("demo", messages, tools("terminal")))
    messages += [assistant(reply), tool_message(reply.tool_calls[0], "denied: the person said no ```")]
    answer = await client.complete(ModelRequest("demo", messages, tools("terminal")))
    assert "denied: the person said no" in answer.text
    assert "````" in answer.text


@pytest.mark.parametrize("prompt", ["create a file for me", "Please write a note", "crea un archivo", "edit something"])
async def test_writing_makes_one_small_file(prompt: str, tmp_path: Path) -> None:
    messages = await turn(prompt, tmp_path, *ALL)
    assert called(messages) == ["write_file"]
    assert "demo" in (tmp_path / "hermes-demo.txt").read_text()
    assert "wrote hermes-demo.txt" in messages[-1].content


@pytest.mark.parametrize("prompt", ["run the tests", "ejecuta las pruebas"])
async def test_running_runs_something_short(prompt: str, tmp_path: Path) -> None:
    messages = await turn(prompt, tmp_path, *ALL)
    assert called(messages) == ["terminal"]
    assert "1 check passed" in messages[-1].content


@pytest.mark.parametrize(
    "prompt", ["Write a function that finds palindromes", "Escribe una función que busque palíndromos"]
)
@pytest.mark.parametrize("seed", range(6))
async def test_code_is_written_tried_and_shown(prompt: str, seed: int, tmp_path: Path) -> None:
    messages = await turn(prompt, tmp_path, *ALL, seed=seed)
    first, answer = messages[1], messages[-1]
    assert first.reasoning
    assert first.tool_calls[0].name == "terminal"
    assert "Never odd or even True" in answer.content
    assert "```python\ndef is_palindrome" in answer.content


async def test_code_without_a_terminal_is_written_or_only_shown(tmp_path: Path) -> None:
    assert called(await turn("write a python function", tmp_path, "write_file")) == ["write_file"]
    messages = await turn("write a python function", tmp_path, "web_fetch")
    assert called(messages) == []
    assert "```python" in messages[-1].content


@pytest.mark.parametrize("snippet", [*SNIPPETS, FALLBACK], ids=lambda snippet: str(snippet.name))
def test_every_snippet_runs(snippet: object) -> None:
    source, trial = getattr(snippet, "source", ""), getattr(snippet, "trial", "")
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"{source}\n{trial}"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


async def test_spawning_plans_and_questions_use_their_tools_when_on_offer(tmp_path: Path) -> None:
    spawned = await turn("use subagents in parallel for this", tmp_path, *ALL)
    assert called(spawned) == ["spawn_parallel"]
    agents = (spawned[1].tool_calls[0].parsed() or {})["agents"]
    assert all(agent["prompt"] for agent in agents)
    assert called(await turn("make a plan", tmp_path, *ALL)) == ["todo", "todo"]
    assert called(await turn("demo: ask", tmp_path, *ALL)) == ["clarify"]
    assert called(await turn("delegate this", tmp_path)) == []


async def test_some_seeds_make_parallel_calls(tmp_path: Path) -> None:
    counts = {len((await turn("list the files", tmp_path, *ALL, seed=seed))[1].tool_calls) for seed in range(12)}
    assert counts == {1, 2}


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("demo: error", RequestRejected),
        ("demo: error 401", KeyRefused),
        ("demo: error 429", RateLimited),
        ("demo: error 500", ServerFault),
        ("demo: error 503", EndpointDown),
    ],
)
async def test_errors_can_be_asked_for(prompt: str, kind: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(kind):
        await turn(prompt, tmp_path, *ALL)


async def test_the_same_seed_and_conversation_give_the_same_reply(tmp_path: Path) -> None:
    request = ModelRequest("demo", [user("list the files")], tools(*ALL))
    replies = [await DemoClient(seed, paced=False).complete(request) for seed in (7, 7)]
    assert replies[0] == replies[1]
    assert await DemoClient(7, paced=True).complete(request) == replies[0]


async def test_it_streams_like_a_real_one_and_can_be_stopped() -> None:
    client, heard = DemoClient(), Heard()
    begun = time.monotonic()
    reply = await client.complete(ModelRequest("demo", [user("hello")]), heard)
    assert time.monotonic() - begun > 0.3
    assert heard.joined("text") == reply.text
    assert heard.joined("reasoning") == reply.reasoning
    assert len(heard.pieces) > 5
    task = asyncio.create_task(client.complete(ModelRequest("demo", [user("demo: long")]), Heard()))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_unpaced_it_is_quick() -> None:
    client = DemoClient(paced=False)
    begun = time.process_time()
    await asyncio.gather(*(client.complete(ModelRequest("demo", [user(f"ducks {n}")])) for n in range(200)))
    assert time.process_time() - begun < 2


async def test_usage_is_known_and_free_and_the_window_is_kept() -> None:
    client = DemoClient(paced=False)
    reply = await client.complete(ModelRequest("demo", [user("tell me about ducks")]))
    assert (reply.usage.prompt_tokens, reply.usage.tokens_known) == (4, True)
    assert reply.usage.reasoning_tokens > 0
    assert reply.usage.completion_tokens > reply.usage.reasoning_tokens
    assert (reply.usage.cost_usd, reply.usage.cost_known) == (0.0, True)
    assert await client.context_window("demo") == WINDOW
    with pytest.raises(ContextTooLong):
        await client.complete(ModelRequest("demo", [user("word " * (WINDOW + 1))]))
    await client.close()


async def test_effort_none_and_a_token_limit_are_respected() -> None:
    client = DemoClient(paced=False)
    reply = await client.complete(
        ModelRequest("demo", [user("ducks")], sampling={"max_tokens": 5}, reasoning_effort="none")
    )
    assert (reply.reasoning, reply.finish_reason) == ("", "length")
    assert len(reply.text.split()) <= 5


async def test_a_summary_holds_what_was_asked() -> None:
    said = "user: build a boat\nassistant: yes"
    text = f"Summarise the conversation below so that\n\n<conversation>\n{said}\n</conversation>"
    reply = await DemoClient(paced=False).complete(ModelRequest("demo", [user(text)]))
    assert "build a boat" in reply.text
    assert reply.tool_calls == ()


async def test_make_client_gives_the_kind_that_is_asked_for() -> None:
    demo = make_client(Endpoint("demo", model="demo"), ProviderSettings(), seed=3, paced=False)
    other = make_client(Endpoint("openai", "http://127.0.0.1:9/v1"), ProviderSettings())
    assert type(demo).__name__ == "DemoClient"
    assert type(other).__name__ == "OpenAIClient"
    await other.close()


@given(st.text(), st.sets(st.sampled_from(ALL)), st.integers(0, 3), st.text())
def test_any_prompt_and_result_gives_a_reply_with_calls_on_offer(
    prompt: str, names: set[str], seed: int, result: str
) -> None:
    async def play() -> Reply:
        client = DemoClient(seed, paced=False)
        messages = [user(prompt)]
        request = ModelRequest("demo", messages, tools(*names))
        reply = await client.complete(request)
        messages += [assistant(reply), *(tool_message(call, result) for call in reply.tool_calls)]
        later = await client.complete(ModelRequest("demo", messages, tools(*names))) if reply.tool_calls else reply
        assert {call.name for call in (*reply.tool_calls, *later.tool_calls)} <= names
        return later

    if not prompt.strip().lower().startswith("demo:"):
        reply = asyncio.run(play())
        assert reply.text or reply.tool_calls
