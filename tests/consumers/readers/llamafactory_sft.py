"""LLaMA-Factory: what its own `get_dataset` makes of the export. Runs in LLaMA-Factory's environment."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tests.consumers.readers.common import Case, Task, answer, spans

CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("qwen", {}),
    ("qwen3", {}),
    ("qwen3", {"enable_thinking": False}),
)
"""Its templates, and what a configuration says besides."""


def main(task: Task) -> list[Case]:
    """The export under each template."""
    # It imports torchaudio for sounds, of which there are none; that package wants a torch of several GB.
    sounds = ModuleType("torchaudio")
    sounds.__spec__ = ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = sounds
    return [read(task, template, more) for template, more in CASES]


def read(task: Task, template: str, more: dict[str, Any]) -> Case:
    """A data set named in `dataset_info.json`, as a training would get it."""
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from transformers import AutoTokenizer

    given = {
        "stage": "sft",
        "do_train": True,
        "model_name_or_path": task.tokenizer,
        "dataset": "llamafactory",
        "dataset_dir": str(task.exports),
        "template": template,
        "cutoff_len": 8192,
        "output_dir": str(task.work),
        "overwrite_cache": True,
        "report_to": "none",
        "use_cpu": True,
        **more,
    }
    model, data, training, _, _ = get_train_args(given)
    tokenizer = AutoTokenizer.from_pretrained(task.tokenizer)
    form = get_template_and_fix_tokenizer(tokenizer, data)
    made = get_dataset(form, model, data, training, stage="sft", tokenizer=tokenizer)["train_dataset"]
    labels = [spans(tokenizer, row["labels"]) for row in made]
    return {
        "format": "llamafactory",
        "how": " ".join([template, *(f"{key}={value}" for key, value in more.items())]),
        "rows": len(made),
        "read": labels,
    }


if __name__ == "__main__":
    answer(main)
