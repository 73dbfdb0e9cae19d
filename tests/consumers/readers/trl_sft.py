"""TRL: one real step of supervised fine-tuning on each export, and what its labels hold. Runs in TRL's environment."""

from __future__ import annotations

from pathlib import Path

import torch
import trl
from datasets import load_dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from tests.consumers.readers.common import Case, Task, answer, spans

CASES = (
    ("openai-object", "qwen3"),
    ("openai-object", "qwen2_5"),
    ("openai-list", "qwen3"),
    ("openai", "qwen3"),
    ("openai", "qwen2_5"),
)


def main(task: Task) -> list[Case]:
    """Each case: an export and one of TRL's own chat templates."""
    return [trained(task, task.exports / f"{name}.jsonl", template) for name, template in CASES]


def trained(task: Task, path: Path, template: str) -> Case:
    """A step over the whole export, on a model of one layer."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(task.tokenizer)
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{template}.jinja").read_text()
    rows = load_dataset("json", data_files=str(path), split="train")
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=1,
            max_position_embeddings=8192,
        )
    )
    before = model.lm_head.weight.detach().clone()
    trainer = trl.SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=rows,
        args=trl.SFTConfig(
            output_dir=str(task.work),
            max_steps=1,
            per_device_train_batch_size=len(rows),
            learning_rate=0.01,
            max_length=None,
            assistant_only_loss=True,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        ),
    )
    loss = trainer.train().training_loss
    moved = not torch.equal(before, trainer.model.lm_head.weight.detach())
    labels = {}
    for row in trainer.train_dataset:
        batch = trainer.data_collator([row])
        ids, wanted = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
        labels[tokenizer.decode(ids)] = spans(tokenizer, wanted)
    asked = [row["messages"][0]["content"] for row in rows]
    read = [next(told for text, told in labels.items() if f"user\n{prompt}<" in text) for prompt in asked]
    return {"format": path.stem, "how": template, "rows": len(rows), "step": loss > 0 and moved, "read": read}


if __name__ == "__main__":
    answer(main)
