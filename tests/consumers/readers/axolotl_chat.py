"""axolotl: what its `chat_template` strategy makes of each export. Runs in axolotl's environment."""

from __future__ import annotations

from typing import Any

from axolotl.datasets import wrap_dataset_for_tokenized_prompt
from axolotl.prompt_strategies import load
from axolotl.utils.dict import DictDefault
from datasets import load_dataset
from transformers import AutoTokenizer

from tests.consumers.readers.common import Case, Task, answer, spans

CONVERSATIONS = {
    "field_messages": "conversations",
    "message_property_mappings": {"role": "from", "content": "value"},
}
"""What a configuration says of files with `conversations`; those with `messages` need nothing."""

CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("sharegpt", "qwen3", CONVERSATIONS),
    ("sharegpt", "qwen_25", CONVERSATIONS),
    ("sharegpt", "chatml", CONVERSATIONS),
    ("hermes-fc", "chatml", CONVERSATIONS),
    ("openai", "qwen3", {}),
    ("openai-object", "qwen3", {}),
    ("openai-object", "qwen_25", {}),
)


def main(task: Task) -> list[Case]:
    """Each case: an export, one of axolotl's own templates, what its configuration says."""
    return [tokenized(task, name, template, more) for name, template, more in CASES]


def tokenized(task: Task, name: str, template: str, more: dict[str, Any]) -> Case:
    """A whole export as axolotl would train it."""
    tokenizer = AutoTokenizer.from_pretrained(task.tokenizer)
    cfg = DictDefault({"sequence_len": 8192, "train_on_inputs": False, "chat_template": template})
    strategy = load("chat_template", tokenizer, cfg, {"type": "chat_template", "chat_template": template, **more})
    rows = load_dataset("json", data_files=str(task.exports / f"{name}.jsonl"), split="train")
    made = wrap_dataset_for_tokenized_prompt(strategy, rows)
    read = [spans(tokenizer, row["labels"]) for row in made]
    return {"format": name, "how": template, "rows": len(made), "read": read}


if __name__ == "__main__":
    answer(main)
