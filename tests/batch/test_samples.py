"""Several samples of each prompt: rows of their own in every count, file and resume."""

from __future__ import annotations

from pathlib import Path

from tests.batch.support import adds_up, dataset, fails, play, thinks


def test_each_sample_is_a_row_with_its_own_seed_and_draw(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", b"{bad"])
    ran = play(
        tmp_path, lambda prompt, spec: thinks(), num_generations=20, distribution="balanced", seed=1, batch_size=7
    )
    adds_up(ran)
    assert ran.summary.counts["total"] == 2 * 20 + 1
    rows = ran.rows()
    assert [(row["prompt_index"], row["sample"]) for row in rows] == [(i, n) for i in range(2) for n in range(20)]
    assert len({row["metadata"]["row_id"] for row in rows}) == 2
    assert len({tuple(row["toolsets_used"]) for row in rows[:20]}) > 3
    assert len({spec.sampling["seed"] for spec in ran.agents.specs}) == 40
    assert ran.json("run.json")["dataset"]["lines"] == 3
    assert {path.name for path in ran.folder.glob("batch_*")} == {f"batch_{n}.jsonl" for n in range(6)}


def test_a_resume_finds_samples_by_content_and_number(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    seen: list[str] = []

    def player(prompt: str, spec: object) -> object:
        seen.append(prompt)
        return fails("rate_limit") if len(seen) == 2 else thinks()

    first = play(tmp_path, player, num_generations=2, num_workers=1)  # type: ignore[arg-type]
    assert (first.summary.counts["kept"], first.summary.counts["failed"]) == (3, 1)
    dataset(tmp_path / "prompts.jsonl", ["x", "b", "a"])
    again = play(tmp_path, lambda prompt, spec: thinks(), resume=True)
    assert sorted(again.agents.prompts) == ["a", "x", "x"]
    adds_up(again)
    assert [(row["prompt_index"], row["sample"]) for row in again.rows()] == [(i, n) for i in range(3) for n in (0, 1)]


def test_more_samples_later_and_fewer(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: thinks())
    more = play(tmp_path, lambda prompt, spec: thinks(), resume=True, num_generations=3)
    assert len(more.agents.prompts) == 4
    assert more.json("run.json")["changes"][0]["what"] == ["num_generations: 1 until now, 3 from here on"]
    fewer = play(tmp_path, lambda prompt, spec: thinks(), resume=True, num_generations=2)
    adds_up(fewer)
    assert fewer.agents.prompts == []
    assert (fewer.summary.counts["total"], fewer.json("statistics.json")["removed"]) == (4, 2)
