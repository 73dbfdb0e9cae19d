"""Turns options and settings into what a run needs, and refuses what cannot be met, before anything is written.

Flags not given on a resume are the run's own; see `options.taken_over`.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hermes_engine.batch.dataset import Dataset
from hermes_engine.batch.distributions import Distribution, chosen, draws, refusal
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Draws, Job, Surroundings
from hermes_engine.batch.options import BatchOptions, taken_over
from hermes_engine.errors import SandboxFault, UsageError
from hermes_engine.messages import Message
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.protocols import AgentSpec, Limits
from hermes_engine.redaction import MARK
from hermes_engine.sandbox.choosing import Wish, sandbox_for
from hermes_engine.sandbox.container import find_program
from hermes_engine.settings import OPENROUTER_URL, Endpoint, Price, Settings
from hermes_engine.settings.addresses import checked_url, password_of
from hermes_engine.settings.endpoints import endpoint_for
from hermes_engine.toolsets import tools_of

_SHORTEST_PASSWORD = 4


@dataclass(frozen=True, slots=True)
class Setup:
    """A run that can begin.

    Attributes:
        options: in effect.
        resolved: settings in effect.
        folder: of the run.
        stored: content of `run.json` of a run that goes on; {} for a new one.
        endpoints: where the model is asked: one, or each of its replicas with its own key.
        spec: of every row's agent.
        distribution, draws: the odds, as named and as they are drawn.
        history: prefilled messages.
        seed: of the run.
        notes: lines the person should read.
        surroundings: where commands of rows run.
        unboxed: why that is no sandbox although one was wanted, or "".
    """

    options: BatchOptions
    resolved: Resolved
    folder: RunFolder
    stored: dict[str, Any]
    endpoints: tuple[Endpoint, ...]
    spec: AgentSpec
    distribution: Distribution
    draws: Draws
    history: tuple[Message, ...]
    seed: int
    notes: tuple[str, ...]
    surroundings: Surroundings
    unboxed: str

    @property
    def endpoint(self) -> Endpoint:
        """Where the model is asked; the first of several."""
        return self.endpoints[0]

    def dataset(self) -> Dataset:
        """The dataset, opened. Raises UsageError."""
        return open_dataset(self.options, self.resolved.settings)

    def job(self, work: Path) -> Job:
        """What the run's rows have in common, with the folder under which they get their own."""
        return Job(
            run=self.options.run_name,
            spec=self.spec,
            draws=self.draws,
            seed=self.seed,
            work=work,
            send_seed=self.options.seed is not None,
            history=self.history,
            keep_work=self.options.keep_work,
            surroundings=self.surroundings,
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool a drawn row could be offered."""
        return tools_of(name for name, _ in self.draws)


def open_dataset(options: BatchOptions, settings: Settings) -> Dataset:
    """The dataset of a run. Raises UsageError: none is named, or it cannot be read."""
    if options.dataset_file is None:
        raise UsageError("--dataset_file is needed", hint="a JSONL file with one prompt a line")
    try:
        return Dataset(options.dataset_file, refused=lambda name: refusal(name, settings))
    except UsageError as error:
        if options.resume or options.only_failed:
            error.hint = error.hint or "--dataset_file tells where it is now"
        raise


def set_up(options: BatchOptions, resolved: Resolved) -> Setup:
    """Checks everything that can be checked before the first row.

    Raises:
        UsageError: wrong options; the run exists and is not resumed; unknown distribution; a cap without a price.
        ConfigError: no model can be asked.
    """
    folder = RunFolder(options.folder)
    folder.check(resume=options.resume or options.only_failed)
    stored = folder.settings()
    before = stored.get("options", {})
    if options.only_failed and not folder.started:
        raise UsageError(f"there is no run {options.run_name} in {options.output_dir}")
    _no_lost_secret(options, before)
    _same_shard(options, before)
    image_given, address_given = options.image is not None, options.ray_address is not None
    options, notes = taken_over(options, before)
    if image_given and options.sandbox != "container":
        raise UsageError("--image is for --sandbox container", hint="rows may name images of their own")
    if address_given and options.engine != "ray":
        raise UsageError("--ray_address is for --engine ray")
    _check_ray(options)
    resolved = with_options(resolved, options)
    settings = resolved.settings
    open_dataset(options, settings).close()
    distribution = chosen(resolved.home, options.distribution)
    odds, left_out = _drawn(distribution, settings, options)
    model = options.model or settings.model
    resolved, endpoints = _endpoints(resolved, options)
    for endpoint in endpoints:
        _check_cap(options, resolved, endpoint)
    if moved := _moved(options, stored, endpoints[0]):
        notes.append(moved)
    if left_out and not distribution.where_enabled:
        why = "not enabled in the profile" if options.toolsets is None else "not among --toolsets"
        notes.append(f"never drawn, {why}: {', '.join(left_out)}")
    surroundings, unboxed = _surroundings(options, settings, stored)
    mode = resolved.mode_for(attended=False)
    spec = AgentSpec(
        name="row",
        kind="row",
        in_folder=False,
        model=model,
        profile=resolved.profile,
        mode=mode,
        limits=Limits(max_turns=options.max_turns, timeout_seconds=options.timeout_seconds),
        sampling=_sampling(options),
        extra_body={**settings.provider.extra_body, **options.extra_body},
        reasoning_effort=options.reasoning_effort or settings.provider.reasoning_effort,
        tokens=options.record_tokens,
        system_prompt=options.ephemeral_system_prompt,
    )
    options = options.model_copy(update={"model": model, "profile": resolved.profile})
    history = prefill(options.prefill_messages_file)
    seed = options.seed or 0
    return Setup(
        options, resolved, folder, stored, endpoints, spec, distribution, odds, history, seed, tuple(notes),
        surroundings, unboxed,
    )  # fmt: skip


def _drawn(distribution: Distribution, settings: Settings, options: BatchOptions) -> tuple[Draws, tuple[str, ...]]:
    """The odds, and the sets left out. Raises UsageError in words of what the person gave."""
    try:
        return draws(distribution, settings)
    except UsageError as error:
        if options.toolsets is None:
            raise
        has = ", ".join(name for name, odds in distribution.odds.items() if odds)
        raise UsageError(
            f"--toolsets {','.join(options.toolsets)} leaves the distribution {distribution.name} nothing to draw",
            hint=f"it has {has}; name one of these, or another --distribution",
        ) from error


def _moved(options: BatchOptions, stored: dict[str, Any], endpoint: Endpoint) -> str:
    """That a resumed run asks another server than before, when no flag says so; "" when it does not."""
    before = str(stored.get("endpoint", {}).get("base_url") or "")
    if options.base_url or not before or MARK in before or before == endpoint.base_url:
        return ""
    return f"server: {before} until now, {endpoint.base_url} from here on"


def _check_ray(options: BatchOptions) -> None:
    """Raises UsageError when Ray cannot work the rows, as far as that is known without trying."""
    if options.engine != "ray":
        return
    if find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray, which is not installed", hint="pip install '.[ray]'")
    if "://" in (options.ray_address or ""):
        raise UsageError(
            f"--ray_address {options.ray_address} is no host:port", hint="name the port of the cluster's head, 6379"
        )


def _surroundings(options: BatchOptions, settings: Settings, stored: dict[str, Any]) -> tuple[Surroundings, str]:
    """Where commands run, and why that is no sandbox. What "auto" found when the run began holds to its end."""
    wish: Wish = options.sandbox
    if wish == "auto" and stored:
        before = stored.get("sandbox", {}).get("kind")
        wish = "bubblewrap" if before == "bubblewrap" else "local"
    kind, reason = sandbox_for(wish)
    if kind == "container":
        try:
            find_program(settings.batch.container_command)
        except SandboxFault as fault:
            raise UsageError(f"--sandbox container: {fault}", hint=fault.hint) from None
    around = Surroundings(
        kind,
        containers=options.sandbox != "local",
        image=options.image or "",
        network=options.sandbox_network,
        pull=options.pull,
        results=options.folder.absolute(),
    )
    return around, reason


def with_options(resolved: Resolved, options: BatchOptions) -> Resolved:
    """The settings with what the options say of profile, server and prices. Raises ConfigError."""
    flags = resolved.overrides
    told: dict[str, Any] = {name: getattr(options, name) for name in ("profile", "mode", "toolsets")}
    told |= {name: next(iter(getattr(options, name)), None) for name in ("base_url", "api_key")}
    asked = {name: value for name, value in told.items() if value is not None and value != getattr(flags, name)}
    if asked:
        resolved = resolve(dataclasses.replace(flags, **asked), resolved.env)
    if options.price_in is not None and options.price_out is not None:
        price = Price(input=options.price_in, output=options.price_out)
        model = options.model or resolved.settings.model
        wire = resolved.endpoint_for(options.model).model
        provider = resolved.settings.provider
        prices = {**provider.prices, model: price, wire: price}
        provider = provider.model_copy(update={"prices": prices})
        resolved = dataclasses.replace(resolved, settings=resolved.settings.model_copy(update={"provider": provider}))
    return resolved


def _endpoints(resolved: Resolved, options: BatchOptions) -> tuple[Resolved, tuple[Endpoint, ...]]:
    """Where the model is asked, each address with its own key, and the settings with those keys among the secrets."""
    first = resolved.endpoint_for(options.model)
    if first.kind != "openai" or len(options.base_url) < 2:
        return resolved, (first,)
    keys = options.api_key or ("",) * len(options.base_url)
    sources = (
        dataclasses.replace(resolved.sources, flag_url=checked_url(url), flag_key=key.strip())
        for url, key in zip(options.base_url, keys, strict=True)
    )
    found = {one.base_url: one for one in (endpoint_for(source, options.model) for source in sources)}
    private = {*resolved.secrets, *(one.api_key for one in found.values() if one.api_key)}
    private |= {word for url in found if len(word := password_of(url)) >= _SHORTEST_PASSWORD}
    secrets = tuple(sorted(private, key=len, reverse=True))
    return dataclasses.replace(resolved, secrets=secrets), tuple(found.values())


def _same_shard(options: BatchOptions, stored: dict[str, Any]) -> None:
    """Raises UsageError when a run is to go on with another part of the dataset than the one it has."""
    if not stored or options.shard is None or options.shard == (has := stored.get("shard")):
        return
    raise UsageError(
        f"the run {options.run_name} has {f'shard {has}' if has else 'the whole dataset'}, not shard {options.shard}",
        hint="take another --run_name for another part",
    )


def _check_cap(options: BatchOptions, resolved: Resolved, endpoint: Endpoint) -> None:
    """Raises UsageError for a cost cap that could never be met because no price is known."""
    prices = resolved.settings.provider.prices
    known = endpoint.kind != "openai" or endpoint.base_url == OPENROUTER_URL
    if options.max_cost_usd is None or known or {endpoint.model, endpoint.typed_model} & set(prices):
        return
    raise UsageError(
        f"--max_cost_usd: the price of {endpoint.typed_model} at {endpoint.base_url} is not known",
        hint="give --price_in and --price_out (US dollars a million tokens), or provider.prices in config.yaml",
    )


def _sampling(options: BatchOptions) -> dict[str, Any]:
    named = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    return {**options.sampling, **{name: value for name, value in named.items() if value is not None}}


def _no_lost_secret(options: BatchOptions, stored: dict[str, Any]) -> None:
    """Raises UsageError when `run.json` left a secret out and it is not given now."""
    for name in ("base_url", "extra_body", "sampling", "ephemeral_system_prompt"):
        if name in stored and name not in options.given() and MARK in json.dumps(stored[name]):
            raise UsageError(f"--{name} held a secret, which run.json does not keep", hint=f"give --{name} again")


def prefill(path: Path | None) -> tuple[Message, ...]:
    """The messages of a `--prefill_messages_file`.

    Raises:
        UsageError: the file cannot be read, or is no list of user and assistant messages.
    """
    if path is None:
        return ()
    try:
        value = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--prefill_messages_file: {path} cannot be read: {said}") from None
    if not isinstance(value, list):
        raise UsageError(f"--prefill_messages_file: {path} is not a list of messages")
    return tuple(_message(path, number, item) for number, item in enumerate(value, 1))


def _message(path: Path, number: int, item: Any) -> Message:
    role, content = (item.get("role"), item.get("content")) if isinstance(item, dict) else (None, None)
    if not isinstance(content, str) or role not in ("user", "assistant"):
        raise UsageError(
            f"--prefill_messages_file: {path}: message {number} is not {{role: user or assistant, content: text}}"
        )
    return Message(role, content)
