"""The dataset card of a run: with it, `load_dataset("data/RUN")` gives the merged rows, whatever is in the first ones.

Names every key of a record with its type; a record that gains a key gains a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FEATURES = """\
  - {name: prompt_index, dtype: int64}
  - {name: conversations, list: json}
  - {name: completed, dtype: bool}
  - {name: toolsets_used, list: string}
  - {name: tool_stats, dtype: json}
  - {name: tool_error_counts, dtype: json}
  - {name: partial, dtype: bool}
  - {name: stop_reason, dtype: string}
  - {name: api_calls, dtype: int64}
  - {name: retries, dtype: int64}
  - {name: sample, dtype: int64}
  - name: reasoning
    struct:
    - {name: turns, dtype: int64}
    - {name: with_reasoning, dtype: int64}
  - name: usage
    struct:
    - {name: prompt_tokens, dtype: int64}
    - {name: completion_tokens, dtype: int64}
    - {name: reasoning_tokens, dtype: int64}
    - {name: tokens_known, dtype: bool}
    - {name: cost_usd, dtype: float64}
    - {name: cost_known, dtype: bool}
  - name: metadata
    struct:
    - {name: batch_num, dtype: int64}
    - {name: timestamp, dtype: string}
    - {name: model, dtype: string}
    - {name: row_id, dtype: string}
    - {name: extra, dtype: string}
"""

_CARD = """\
---
configs:
- config_name: default
  description: "{name}, written at {made}"
  data_files:
  - {{split: train, path: trajectories.jsonl}}
dataset_info:
  features:
{features}---

# {name}

Agent trajectories in ShareGPT form: one conversation a line, with its tool calls, made by `hermes batch run`.

| | |
|---|---|
| model | `{model}` |
| toolset distribution | `{distribution}` |
| rows kept | {kept} of {total} |

`trajectories.jsonl` holds the kept rows in the order of the dataset. `rejected.jsonl` and `failed.jsonl` hold the
others with the reason, `run.json` the settings, the schemas of the tools and the system prompt, `statistics.json` the
figures.

```python
from datasets import load_dataset

rows = load_dataset("path/to/{name}", split="train")
```
"""


def card(*, name: str, made: str, model: str, distribution: str, counts: Mapping[str, Any]) -> str:
    """The text of the card.

    `made`, the time of writing, is more than a note: `load_dataset` keeps what it has read under the folder's name and
    the head of its card, and looks at no file. With the same head it would give the rows of before a resume, or those
    of another folder's run of the same name.
    """
    return _CARD.format(
        features=_FEATURES,
        name=name,
        made=made,
        model=model.replace("`", "'"),
        distribution=distribution,
        kept=counts["kept"],
        total=counts["total"],
    )
