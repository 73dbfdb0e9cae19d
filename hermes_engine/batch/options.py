"""What a batch run is told: every flag as a checked value, and what a resumed run takes over from its `run.json`.

Knows no command line and touches no run folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from hermes_engine.batch.quality import Quality
from hermes_engine.errors import ConfigError, UnknownName, UsageError
from hermes_engine.paths import safe_name
from hermes_engine.settings import Mode, ReasoningEffort
from hermes_engine.toolsets import expand

Fsync = Literal["row", "second", "end"]

DELETE_IT = "delete it and give the flags again: the rows stay"
"""What to do with a `run.json` that cannot be used."""

NOT_STORED = frozenset({"api_key", "resume", "only_failed", "output_dir"})
"""Options that belong to one invocation, never to the run."""

MEANING = (
    "model",
    "profile",
    "toolsets",
    "base_url",
    "sandbox",
    "sandbox_network",
    "image",
    "distribution",
    "num_generations",
    "filter",
    "ephemeral_system_prompt",
    "prefill_messages_file",
    "max_turns",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "sampling",
    "extra_body",
    "seed",
)
"""Options that change what a row means; a change on resume is named to the person."""

NO_NUMBER = "none"
"""Instead of a number that a run may have or not: it has none from here on."""

OPTIONAL_NUMBERS = (
    "max_samples",
    "max_tokens",
    "temperature",
    "timeout_seconds",
    "max_cost_usd",
    "max_total_tokens",
    "max_seconds",
    "requests_per_minute",
    "tokens_per_minute",
    "price_in",
    "price_out",
    "seed",
)

RESERVED = frozenset({"model", "messages", "tools", "stream", "n"})
"""Fields of a request that are a row's own: set from outside, the record would tell something else than was asked."""

_BETWEEN_URLS = re.compile(r",(?=\s*https?://)")
_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")


class BatchOptions(BaseModel):
    """The options of one invocation. `model_fields_set` tells which were given."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    run_name: str
    """Name of the run: its folder under `output_dir`."""
    dataset_file: Path | None = None
    """JSONL file of prompts; needed unless a run is resumed."""
    batch_size: int = Field(10, ge=1)
    """Prompts to a `batch_N.jsonl`."""
    model: str | None = None
    """Model as typed; none: the one the settings name."""
    profile: str | None = None
    """Profile whose settings and instructions the rows have; none: the one in use."""
    toolsets: tuple[str, ...] | None = None
    """Toolsets rows may have, in place of those the profile lists; none: the profile's."""
    mode: Mode | None = None
    """What runs without asking; where the settings say nothing it is `auto`, for nobody can answer."""
    num_workers: int = Field(4, ge=1, le=4096)
    """Prompts in flight at once."""
    engine: Literal["threads", "ray"] = "threads"
    """What works the rows: this process, or processes on the machines of a Ray cluster."""
    ray_address: str | None = None
    """host:port of a running Ray cluster, with --engine ray. Without, or with local, one is started for the run."""
    max_turns: int = Field(10, ge=1)
    """Model requests a prompt may take."""
    distribution: str = "default"
    """Which toolset distribution rows draw from."""
    reasoning_effort: ReasoningEffort | None = None
    """none, minimal, low, medium, high or xhigh; left to the server when not given."""
    resume: bool = False
    """Go on with a run of this name: what is finished stays, failed rows run again. Flags not given are the run's own;
    `none` takes a number away."""
    base_url: tuple[str, ...] = ()
    """Address of an OpenAI-compatible server; given several times, or as A,B, those of one model's replicas: each row
    stays with one, and goes to another while that is down."""
    api_key: tuple[str, ...] = Field((), repr=False)
    """Key for that server; with several --base_url one for each, in order. The environment is a better place."""
    max_samples: int | None = Field(None, ge=1)
    """Only the first N lines of the dataset."""
    shard: str | None = None
    """I/N: only part I (from 1) of the N parts of the dataset: each N-th of its lines, from the I-th on. `hermes batch
    merge` makes one run of the parts' runs."""
    num_generations: int = Field(1, ge=1, le=1000)
    """Samples of each prompt: each a row of its own, with its own seed and draw of toolsets."""
    max_tokens: int | None = Field(None, ge=1)
    """Tokens one reply may have."""
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Sampling temperature."""
    ephemeral_system_prompt: str | None = None
    """System prompt of the rows, in place of the built one; not part of the records."""
    prefill_messages_file: Path | None = None
    """JSON file with a list of {role, content} put before each prompt; not part of the records."""
    timeout_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds a prompt may take."""
    max_cost_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """US dollars the whole run may cost; needs a known price."""
    max_total_tokens: int | None = Field(None, ge=1)
    """Tokens the whole run may use."""
    max_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Seconds one invocation may take; then rows in flight get a moment to end, as after Ctrl+C."""
    requests_per_minute: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Requests to the model, over all workers."""
    tokens_per_minute: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Tokens of requests and replies, over all workers."""
    price_in: float | None = Field(None, ge=0, allow_inf_nan=False)
    """US dollars a million prompt tokens, where the server reports no cost."""
    price_out: float | None = Field(None, ge=0, allow_inf_nan=False)
    """US dollars a million answer tokens."""
    seed: int | None = Field(None, ge=0)
    """Seed of the toolset draws; when given, each request carries its row's seed too."""
    output_dir: Path = Path("data")
    """Folder that holds the runs."""
    sandbox: Literal["auto", "local", "bubblewrap", "container"] = "auto"
    """Where commands of rows run: auto takes bubblewrap where it works, else this machine as you; a row that names an
    image runs in a container, unless this is local."""
    sandbox_network: bool = False
    """Let commands in a sandbox reach the network: what a row's text makes of them could then send what they see."""
    image: str | None = None
    """Container image of rows that name none, with --sandbox container."""
    pull: bool = False
    """Fetch images that are not here; else their rows fail."""
    work_dir: Path | None = None
    """Folder under which rows get their own folders; the system's temporary one when not given."""
    keep_work: bool = False
    """Keep the rows' folders."""
    shared_cwd: bool = False
    """Let rows that name the same `cwd` run at the same time."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Further sampling fields (top_p, top_k, min_p, stop, ...), as a JSON object or a file with one."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further request fields this server understands, as a JSON object."""
    endpoint_wait: float = Field(3600.0, ge=0, allow_inf_nan=False)
    """Seconds to wait for a server that is down before the run stops."""
    keep_without_reasoning: bool = False
    """Keep rows in which the model never reasoned."""
    filter: tuple[str, ...] = ()
    """NAME[:VALUE], several times: further filters that kept rows have to pass."""
    fsync: Fsync = "second"
    """When rows are forced to the disk: with each row, once a second, or at the end."""
    record: bool = False
    """Keep every exchange with the model, so that `hermes batch replay` can run rows again without it."""
    record_tokens: bool = False
    """Keep the tokens of each reply and their log-probabilities, where the server tells them (vLLM, SGLang)."""
    only_failed: bool = False
    """Run only the rows that failed (`hermes batch retry`)."""

    @field_validator(*OPTIONAL_NUMBERS, mode="before")
    @classmethod
    def _none_in_words(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip().lower() == NO_NUMBER else value

    @field_validator("run_name")
    @classmethod
    def _name_is_one_component(cls, value: str) -> str:
        try:
            return safe_name("run name", value)
        except UsageError as error:
            raise ValueError(error.line) from None

    @field_validator("base_url", mode="before")
    @classmethod
    def _addresses(cls, value: Any) -> Any:
        given = (value,) if isinstance(value, str) else value or ()
        urls = (url.strip() for text in given for url in _BETWEEN_URLS.split(str(text)))
        return tuple(dict.fromkeys(url for url in urls if url))

    @field_validator("api_key", mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value or ()

    @field_validator("shard")
    @classmethod
    def _part_of_all(cls, value: str | None) -> str | None:
        if value is not None:
            found = _SHARD.fullmatch(value.strip())
            if found is None or not 1 <= int(found[1]) <= int(found[2]):
                raise ValueError(f"{value} is no part; the first of four is 1/4, the last 4/4")
            return f"{int(found[1])}/{int(found[2])}"
        return None

    @field_validator("toolsets", mode="before")
    @classmethod
    def _known_sets(cls, value: Any) -> Any:
        if value is None:
            return None
        names = value.split(",") if isinstance(value, str) else value
        try:
            return expand(str(name).strip() for name in names if str(name).strip())
        except UnknownName as error:
            raise ValueError(error.line) from None

    @field_validator("filter")
    @classmethod
    def _known_filters(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            Quality(value)
        except UsageError as error:
            raise ValueError(error.line) from None
        return value

    @field_validator("sampling", "extra_body")
    @classmethod
    def _fields_of_a_request(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(RESERVED & value.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here; a row's request has its own")
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            raise ValueError("it holds NaN or an infinity, which are no JSON") from None
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("--price_in and --price_out are given together")
        wanted = max(1, len(self.base_url))
        if len(self.api_key) not in (0, wanted) and (self.base_url or not self.resume):
            raise ValueError(
                f"--api_key is given {len(self.api_key)} times for {len(self.base_url)} --base_url: one for each, in "
                "their order, since a key goes to its own server only"
            )
        return self

    @property
    def part(self) -> tuple[int, int]:
        """Which part of the dataset is worked, from 0, and how many there are."""
        which, _, of = (self.shard or "1/1").partition("/")
        return int(which) - 1, int(of)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.output_dir / self.run_name

    def given(self) -> dict[str, Any]:
        """The options that were named by the person, with their values; None names nothing but a number taken away."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in named.items() if value is not None or name in OPTIONAL_NUMBERS}

    def stored(self) -> dict[str, Any]:
        """The options as `run.json` keeps them: JSON values, absolute paths, no secret."""
        values = self.model_dump(mode="json", exclude=set(NOT_STORED))
        for name in ("dataset_file", "prefill_messages_file", "work_dir"):
            path = getattr(self, name)
            values[name] = None if path is None else str(path.absolute())
        return values


def checked(values: Mapping[str, Any]) -> BatchOptions:
    """Options from named values.

    Raises:
        UsageError: a value is wrong; the message names the flag.
    """
    try:
        return BatchOptions.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        flag = f"--{first['loc'][0]}: " if first["loc"] else ""
        raise UsageError(f"{flag}{_said(first)}") from None


def _said(error: ErrorDetails) -> str:
    """What is wrong with a value, in words."""
    words = {
        "greater_than_equal": "{given} is too small; it must be {ge} or more",
        "greater_than": "{given} is too small; it must be more than {gt}",
        "less_than_equal": "{given} is too large; it must be {le} or less",
        "finite_number": "{given} is not a finite number",
        "int_parsing": "{given!r} is not a whole number",
        "int_from_float": "{given!r} is not a whole number",
        "float_parsing": "{given!r} is not a number",
        "bool_parsing": "{given!r} is neither true nor false",
        "literal_error": "{given!r} is none of {expected}",
    }
    if error["type"] in words:
        return words[error["type"]].format(given=error["input"], **error.get("ctx", {}))
    return error["msg"].removeprefix("Value error, ")


def taken_over(options: BatchOptions, stored: Mapping[str, Any]) -> tuple[BatchOptions, list[str]]:
    """The options of a resumed run: what is given now, else what the run had.

    Args:
        options: of this invocation.
        stored: `options` of the run's `run.json`; keys nobody knows are passed over.

    Returns:
        The options in effect, and a line for each given one that changes what rows mean.

    Raises:
        ConfigError: a stored value is wrong.
    """
    if not stored:
        return options, []
    values = {name: value for name, value in stored.items() if name in BatchOptions.model_fields}
    given = options.given()
    try:
        before = checked({**values, "run_name": options.run_name})
    except UsageError as error:
        raise ConfigError(f"the run's run.json: {error}", hint=DELETE_IT) from None
    changes = [
        _told(name, getattr(before, name), given[name])
        for name in MEANING
        if name in given and _differs(getattr(before, name), given[name])
    ]
    return checked({**values, **given, "run_name": options.run_name}), changes


def _differs(before: Any, now: Any) -> bool:
    if isinstance(now, Path) and isinstance(before, Path):
        return before.absolute() != now.absolute()
    return bool(before != now)


def _told(name: str, before: Any, now: Any) -> str:
    """A change in words; what is long or may hold a secret is not shown in part."""
    if name in ("sampling", "extra_body", "ephemeral_system_prompt"):
        return f"{name}: differs from here on"
    return f"{name}: {_shown(before)} until now, {_shown(now)} from here on"


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "not set"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
