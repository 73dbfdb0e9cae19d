"""The settings as values: every key of `config.yaml`, its type, limits and default. Reads no file.

Defaults are the contract's. A key that is empty (`delegation:` with nothing after it) means its default.
Unknown keys are dropped here; `settings.reading` has reported them by then.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hermes_engine.errors import ConfigError, UnknownName
from hermes_engine.settings.addresses import OPENROUTER_URL, checked_url
from hermes_engine.toolsets import expand

DEFAULT_MODEL = "anthropic/claude-sonnet-4.6"
DEFAULT_TOOLSETS = ("terminal", "file", "delegation")
DEFAULT_PROFILE = "default"

Mode = Literal["ask", "edits", "plan", "auto", "yolo"]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
SendEffort = Literal["auto", "reasoning_effort", "reasoning", "enable_thinking", "thinking", "template_effort"]


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not yes or no")
    return value


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _split_names(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _known_toolsets(value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return expand(value)
    except UnknownName as error:
        raise ValueError(error.line) from None


def _address(value: str) -> str:
    try:
        return checked_url(value)
    except ConfigError as error:
        raise ValueError(error.line) from None


def _database(value: str) -> str:
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("it looks like postgresql://user@host/name")
    return value


Count = Annotated[int, BeforeValidator(_number), Field(ge=1)]
CountOrZero = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Money = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Address = Annotated[str, AfterValidator(_address)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
ToolsetNames = Annotated[tuple[str, ...], BeforeValidator(_split_names), AfterValidator(_known_toolsets)]


def _as_word(value: Any, annotation: Any) -> Any:
    """YAML reads a bare on or off as yes or no; where one of these words is meant it becomes the word again."""
    if isinstance(value, bool) and get_origin(annotation) is Literal:
        word = "on" if value else "off"
        return word if word in get_args(annotation) else value
    return value


class Section(BaseModel):
    """One block of keys. An empty key counts as not given unless null is a value of it."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        fields = cls.model_fields
        return {
            key: _as_word(value, fields[key].annotation) if key in fields else value
            for key, value in values.items()
            if value is not None or (key in fields and fields[key].default is None)
        }


class DelegationSettings(Section):
    """Agents that an agent starts."""

    max_concurrent: Count = 4
    """Children at work at once over the whole tree, the chat's own agent not counted."""
    max_depth: CountOrZero = 2
    """Generations of children; 0 means that no agent may start one."""
    max_per_turn: Count = 200
    """Children that may be started in one turn of the agent at the top, by all below it together."""
    max_turns: Count = 50
    """Model requests of a child that is given no limit of its own."""
    timeout_seconds: Seconds = 900
    """Seconds a child may take when it is given no limit of its own."""
    model: str | None = None
    """Model of children whose profile names none; null: the parent's, on another profile that of `-m` or the home."""


class KanbanSettings(Section):
    """The board's dispatcher."""

    max_workers: Count = 3
    """Cards worked at once."""
    failure_limit: Count = 3
    """Failed tries after which a card is blocked."""
    claim_ttl_seconds: Seconds = 900
    """Seconds after which a claim without a sign of life lapses."""
    retry_seconds: Seconds = 1
    """Seconds before the second try of a card; doubled for each further one."""
    timeout_seconds: Seconds | None = None
    """Seconds one try may take; null: no limit."""
    isolation: Literal["inprocess", "process"] = "inprocess"
    """Where a board's workers run: in the program that works it, or in a process each."""
    database_url: Annotated[str, AfterValidator(_database)] | None = None
    """PostgreSQL that holds the boards (`postgresql://user@host/name`); null: files of the home."""


class ApprovalSettings(Section):
    """What runs without asking."""

    mode: Mode = "ask"
    """ask | edits | plan | auto | yolo. Not given, it is `auto` wherever no person can answer."""
    allow: Texts = ()
    """Rules that let a call run, as "always" writes them."""
    deny: Texts = ()
    """Rules that refuse a call; they win over `allow`."""


class LimitSettings(Section):
    """What ends a turn."""

    max_turns: Count = 90
    """Model requests in one turn."""
    max_cost_usd: Money | None = None
    """US dollars one turn may cost; null: no limit."""


class StorageSettings(Section):
    """How long things are kept."""

    keep_days: CountOrZero = 90
    """Days that recorded events and ended agents stay (conversations always do); 0 keeps everything."""


class Price(Section):
    """What a model costs."""

    input: Money = 0.0
    """US dollars a million prompt tokens."""
    output: Money = 0.0
    """US dollars a million answer tokens."""


class ProviderSettings(Section):
    """How the model's server is spoken to."""

    connect_timeout_seconds: Seconds = 10
    """Seconds until a connection must stand."""
    first_byte_timeout_seconds: Seconds = 600
    """Seconds until the first piece of a reply: slow local models read the prompt first."""
    idle_timeout_seconds: Seconds = 120
    """Seconds between two pieces of a reply; there is no limit on the whole."""
    max_reply_characters: Count = 8_000_000
    """Characters of one reply, with its reasoning and calls; what goes on longer is cut off there."""
    max_retries: CountOrZero = 2
    """Repeats of a failed request (three tries in all)."""
    retry_after_cap_seconds: CountOrZero = 60
    """Longest wait named by a server that is slept; a longer one is reported instead."""
    stream_usage: bool = True
    """Whether to ask the server for token counts (`stream_options`)."""
    text_tool_calls: bool = False
    """Whether calls that a model writes as text are taken as calls."""
    tool_mode: Literal["native", "json_schema"] = "native"
    """native | json_schema: tools as such, or as a JSON schema, for servers that hold a model to no tool call."""
    send_reasoning: Literal["off", "reasoning_content"] = "off"
    """off | reasoning_content: whether earlier turns' reasoning is sent back, and under which name."""
    context_window: Count | None = None
    """Tokens the model can hold, for servers that do not tell."""
    reasoning_effort: ReasoningEffort | None = None
    """none | minimal | low | medium | high | xhigh; null leaves it to the server."""
    send_effort: SendEffort = "auto"
    """auto | reasoning_effort | reasoning | enable_thinking | thinking | template_effort: how it is sent."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request, as the server documents them."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices by model name, where the server reports no cost."""


class WebSettings(Section):
    """What the web tool may reach."""

    allow_private: bool = False
    """Whether private and loopback addresses may be fetched (a cloud's metadata address never)."""
    allow_hosts: Texts = ()
    """Hosts or networks (10.0.0.0/8) that may be fetched although they are private."""
    search_url: str = "https://html.duckduckgo.com/html/?q={query}"
    """Address that `web_search` asks, with {query} in it; a SearXNG server's wants `&format=json`."""


class TerminalSettings(Section):
    """Commands that agents run."""

    timeout_seconds: Seconds = 120
    """Seconds a command may take when the call names none."""
    pass_env: Texts = ()
    """Names of variables handed to commands although they look like secrets."""


class BatchSettings(Section):
    """Batch runs."""

    max_runs: Count = 2
    """Runs at work at once that the app started."""
    container_command: str | None = None
    """Program that makes containers, its name or path; null: podman, else docker."""
    container_memory: str | None = "2g"
    """Memory a row's container may use, as podman and docker write it; null: no limit."""
    container_pids: Count | None = 512
    """Processes a row's container may hold at once; null: no limit."""
    container_read_only: bool = True
    """Whether an image's own files cannot be changed; /tmp always can."""


class UiSettings(Section):
    """How the interface looks and behaves."""

    theme: str = "terminal"
    """Name of a theme; `terminal` follows the terminal's own colours."""
    motion: bool = True
    """Whether anything moves (spinners)."""
    mouse: Literal["on", "wheel", "off"] = "on"
    """on | wheel | off; with off the terminal selects text itself. `/mouse` changes it at once."""
    sidebar: Literal["auto", "on", "off"] = "auto"
    """auto | on | off; auto shows it where the screen is wide enough. `/sidebar` changes it at once."""
    on_hangup: Literal["stop", "leave"] = "stop"
    """stop | leave: what becomes of work when the terminal goes; leave lets it go on in a process of its own."""


class Settings(Section):
    """All settings in effect, after every source has spoken."""

    model: str = DEFAULT_MODEL
    """Model as typed; translated for OpenRouter only."""
    base_url: Address = OPENROUTER_URL
    """Address of an OpenAI-compatible API."""
    profile: str = DEFAULT_PROFILE
    """Profile used when none is named; counts in the home's `config.yaml` only."""
    toolsets: ToolsetNames = DEFAULT_TOOLSETS
    """Sets of tools on offer, `all` (every set but kanban) already spelled out; () is no tools."""
    limits: LimitSettings = Field(default_factory=LimitSettings)
    """What ends a turn."""
    delegation: DelegationSettings = Field(default_factory=DelegationSettings)
    """Agents that an agent starts."""
    kanban: KanbanSettings = Field(default_factory=KanbanSettings)
    """The board's dispatcher."""
    approvals: ApprovalSettings = Field(default_factory=ApprovalSettings)
    """What runs without asking."""
    storage: StorageSettings = Field(default_factory=StorageSettings)
    """How long things are kept."""
    provider: ProviderSettings = Field(default_factory=ProviderSettings)
    """How the model's server is spoken to."""
    web: WebSettings = Field(default_factory=WebSettings)
    """What the web tool may reach."""
    terminal: TerminalSettings = Field(default_factory=TerminalSettings)
    """Commands that agents run."""
    batch: BatchSettings = Field(default_factory=BatchSettings)
    """Batch runs started from the app."""
    ui: UiSettings = Field(default_factory=UiSettings)
    """How the interface looks and behaves."""
