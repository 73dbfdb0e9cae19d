"""The tokens of replies as their server tells them: kept beside the rows, and used by the export as they are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.export import export
from hermes_engine.batch.export.atropos import UNTRAINED, Atropos, atropos_of, load_tokenizer
from hermes_engine.batch.export.feed import Fed, feed
from hermes_engine.batch.export.groups import Groups
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.joining import join
from hermes_engine.batch.tokens import HALF_TOLD, UNTOLD
from hermes_engine.errors import UsageError
from hermes_engine.events import Notice
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.served import Batch, prompt_of, results_in, run
from tests.batch.support import read_rows
from tests.batch.test_export_forms import TOKENIZER
from tests.batch.trainer import Trainer
from tests.conftest import Serve
from tests.server.scripted import Seen
from tests.server.tokens import Said, Server, TokenModel, logprob


def works(seen: Seen) -> Said:
    """Two calls, then an answer; thinks in each turn."""
    number = results_in(seen)
    if number == 2 or prompt_of(seen) == "short":
        return Said("Done: ñ.", "I know.")
    return Said("", f"Look {number}.", [("terminal", {"command": f"echo {number}"})])


@pytest.fixture
def keeps_thoughts(isolated_home: Path) -> None:
    """Earlier thoughts are sent back, so that each request tells all that was said before."""
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text("provider: {send_reasoning: reasoning_content}\n")


def recorded(serve: Serve, tmp_path: Path, model: TokenModel, rows: list[Any], **values: Any) -> Batch:
    return run(tmp_path, serve(model), rows, record_tokens=True, **values)


def groups(done: Batch, tmp_path: Path, *, tokenizer: Path | None = None, **values: Any) -> tuple[list[Any], Groups]:
    folder = RunFolder(done.folder)
    form = atropos_of(folder, tokenizer)
    made = Groups(form, **values)
    export(folder, form, tmp_path / "out.jsonl", groups=made)
    return read_rows(tmp_path / "out.jsonl"), made


def text(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


def warnings(done: Batch) -> list[str]:
    return [event.text for event in done.events if isinstance(event, Notice) and event.level == "warning"]


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_what_the_model_read_and_said_is_kept_and_exported_as_it_is(
    serve: Serve, tmp_path: Path, keeps_thoughts: None, server: Server
) -> None:
    model = TokenModel(works, server)
    done = recorded(serve, tmp_path, model, ["a", "short"], num_workers=1)
    assert done.counts == {"total": 2, "kept": 2}
    assert done.statistics["tokens"] == {"rows": 2, "without": 0}
    assert warnings(done) == []
    assert (done.folder / "tokens.jsonl").stat().st_mode & 0o777 == 0o600
    assert all("tokens" not in row for row in done.rows())
    lines = read_rows(done.folder / "tokens.jsonl")
    assert [(line["whole"], len(line["turns"])) for line in lines] == [(True, 3), (True, 1)]
    kept = sum(len(turn["prompt"]) + len(turn["tokens"]) for turn in lines[0]["turns"])
    last_prompt, last_reply = model.sent[2]
    assert kept == len(last_prompt) + len(last_reply), "each token of a conversation once"
    made, told = groups(done, tmp_path)
    assert len(made) == 2
    assert dict(told.left_out) == {}
    assert list(told.notes()) == []
    for group, requests in zip(made, (model.sent[:3], model.sent[3:]), strict=True):
        (tokens,), (masks,), (logprobs,) = group["tokens"], group["masks"], group["inference_logprobs"]
        prompt, reply = requests[-1]
        assert text(tokens) == prompt + reply
        trained = [place for place, mask in enumerate(masks) if mask != UNTRAINED]
        assert text([masks[place] for place in trained]) == "".join(said for _, said in requests)
        assert [logprobs[place] for place in trained] == [
            logprob(place) for _, said in requests for place in range(len(said))
        ]
        assert {logprobs[place] for place in range(len(tokens)) if place not in set(trained)} == {1.0}
        assert group["messages"][0][0] == {"role": "user", "content": prompt_of_text(prompt)}


def prompt_of_text(prompt: str) -> str:
    return prompt.split("<|im_start|>user\n")[1].split("<|im_end|>")[0]


def test_a_reply_is_asked_for_whole_and_only_with_the_flag(serve: Serve, tmp_path: Path) -> None:
    server = serve(TokenModel(works))
    run(tmp_path, server, ["a"], record_tokens=True)
    for seen in server.requests:
        assert (seen.body["stream"], seen.body["logprobs"], seen.body["return_token_ids"]) == (False, True, True)
        assert "stream_options" not in seen.body
    server.requests.clear()
    done = run(tmp_path, server, run_name="without")
    for seen in server.requests:
        assert seen.body["stream"] is True
        assert not {"logprobs", "return_token_ids"} & seen.body.keys()
    assert not (done.folder / "tokens.jsonl").exists()
    assert "tokens" not in done.statistics


def test_what_later_requests_told_otherwise_is_there_as_they_told_it_and_not_trained(
    serve: Serve, tmp_path: Path
) -> None:
    """Without `send_reasoning` thoughts are not told again: no token is trained in a context it did not have."""
    model = TokenModel(works)
    done = recorded(serve, tmp_path, model, ["a"])
    made, told = groups(done, tmp_path)
    (tokens,), (masks,), (logprobs,) = made[0]["tokens"], made[0]["masks"], made[0]["inference_logprobs"]
    prompt, reply = model.sent[-1]
    assert text(tokens) == prompt + reply
    trained = text([mask for mask in masks if mask != UNTRAINED])
    assert trained == "<t<t" + reply, "`<think>` and `<tool_call>` begin alike"
    assert len(logprobs) == len(tokens)
    assert list(told.notes()) == ["1 rows are trained in part: later requests repeated what was said with other tokens"]


@pytest.mark.parametrize(
    "model", [TokenModel(works, "silent"), TokenModel(works, "refuses"), TokenModel(works, lost=1)]
)
def test_a_server_that_tells_no_tokens_is_said_once_and_its_rows_are_counted(
    serve: Serve, tmp_path: Path, model: TokenModel
) -> None:
    done = recorded(serve, tmp_path, model, ["a", "b", "short"])
    assert done.counts == {"total": 3, "kept": 3}
    assert warnings(done) == [UNTOLD]
    assert done.statistics["tokens"] == {"rows": 0, "without": 3}
    with pytest.raises(UsageError, match="--tokenizer DIR"):
        atropos_of(RunFolder(done.folder), None)
    made, told = groups(done, tmp_path, tokenizer=TOKENIZER)
    expected = Atropos(load_tokenizer(TOKENIZER))
    assert made == [json.loads(json.dumps(expected.rows(row)[0])) for row in done.rows()]
    assert list(told.notes()) == []


def test_llama_cpp_tells_the_answers_only_which_is_kept_and_no_sequence(serve: Serve, tmp_path: Path) -> None:
    done = recorded(serve, tmp_path, TokenModel(works, "llama.cpp"), ["short", "a"], num_workers=1)
    assert warnings(done) == [HALF_TOLD]
    line = read_rows(done.folder / "tokens.jsonl")[0]
    assert text(line["turns"][0]["tokens"]) == "<think>I know.</think>Done: ñ.<|im_end|>\n"
    assert (line["whole"], line["turns"][0]["prompt"]) == (False, [])
    assert done.statistics["tokens"] == {"rows": 0, "without": 2}


def test_rows_without_tokens_fall_back_to_the_tokenizer_and_are_counted(
    serve: Serve, tmp_path: Path, keeps_thoughts: None
) -> None:
    """As after a resume at another server."""
    recorded(serve, tmp_path, TokenModel(works), ["a", "b", "c"], max_samples=2)
    done = run(tmp_path, serve(TokenModel(works, "silent")), resume=True, max_samples=3)
    assert done.statistics["tokens"] == {"rows": 2, "without": 1}
    made, told = groups(done, tmp_path, tokenizer=TOKENIZER)
    assert [len(group["inference_logprobs"]) for group in made] == [1, 1, 0]
    assert list(told.notes()) == [
        "1 rows have no recorded tokens: the tokenizer made theirs, without log-probabilities"
    ]
    made, told = groups(done, tmp_path)
    assert len(made) == 2
    reason = "not told in this form: no tokens were recorded, and no --tokenizer is given to make them"
    assert dict(told.left_out) == {reason: 1}


def test_a_killed_process_loses_no_tokens_of_a_kept_row(serve: Serve, tmp_path: Path) -> None:
    """Its last line may be torn; a row that was written here and not yet there runs again, and its last line counts."""
    model = TokenModel(works)
    done = recorded(serve, tmp_path, model, ["a", "short"], num_workers=1)
    path = done.folder / "tokens.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    batch = done.folder / "batch_0.jsonl"
    batch.write_bytes(batch.read_bytes().splitlines(keepends=True)[0])
    path.write_bytes(lines[0] + lines[1] + lines[1][:30])
    again = run(tmp_path, serve(model), resume=True)
    assert again.counts == {"total": 2, "kept": 2}
    assert again.statistics["tokens"] == {"rows": 2, "without": 0}
    assert [line["row"] for line in read_rows(path)] == [json.loads(line)["row"] for line in (*lines, lines[1])]


def test_an_empty_reply_that_is_asked_for_again_breaks_no_sequence(
    serve: Serve, tmp_path: Path, keeps_thoughts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    asked: list[int] = []

    def hesitates(seen: Seen) -> Said:
        asked.append(1)
        return Said("", "Hm.") if len(asked) == 1 else works(seen)

    model = TokenModel(hesitates)
    done = recorded(serve, tmp_path, model, ["a"])
    assert done.statistics["tokens"] == {"rows": 1, "without": 0}
    made, _ = groups(done, tmp_path)
    assert text(made[0]["tokens"][0]) == "".join(model.sent[-1])


def test_the_trainer_gets_tokens_and_log_probabilities_of_groups(
    serve: Serve, tmp_path: Path, keeps_thoughts: None
) -> None:
    pytest.importorskip("atroposlib", reason="atroposlib is not installed: make test does it")
    done = recorded(serve, tmp_path, TokenModel(works), ["a", "b"], num_generations=2)
    folder, trainer = RunFolder(done.folder), Trainer()
    try:
        trainer.register(4, longest=20000)
        trainer.batch()
        made = Groups(atropos_of(folder, None), lambda record: 1.0 - record["sample"])
        asyncio.run(feed(folder, trainer.url, made, told := Fed()))
        assert told.sent == 2
        batch = trainer.batch()
    finally:
        trainer.close()
    assert len(batch) == 2
    for group in batch:
        assert group["scores"] == [1.0, 0.0]
        assert [len(item) for item in group["inference_logprobs"]] == [len(item) for item in group["tokens"]]
        assert any(value < 0 for value in group["inference_logprobs"][0])


def test_shards_keep_their_tokens_when_they_are_merged(serve: Serve, tmp_path: Path, keeps_thoughts: None) -> None:
    model = TokenModel(works)
    parts = [
        recorded(serve, tmp_path, model, ["a", "short", "c"], run_name=f"p{part}", shard=f"{part}/2") for part in (1, 2)
    ]
    target = RunFolder(tmp_path / "data" / "all")
    join(target, [RunFolder(part.folder) for part in parts], resolve(Overrides()))
    whole = Batch(parts[0].summary, [])
    whole.folder = target.root
    assert whole.statistics["tokens"] == {"rows": 3, "without": 0}
    made, told = groups(whole, tmp_path)
    assert [len(group["inference_logprobs"]) for group in made] == [1, 1, 1]
    assert dict(told.left_out) == {}
