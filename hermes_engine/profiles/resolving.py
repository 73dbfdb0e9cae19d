"""Puts the sources of settings together: flag > environment > profile's config > `config.yaml` > default.

Reads the home and the profile only, never the folder the program runs in, and never writes the process
environment: what a profile's `.env` says stays in the `Resolved` made for that profile.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from hermes_engine.dotenv import read_dotenv
from hermes_engine.errors import ConfigError, UnknownName
from hermes_engine.paths import Home, expanded
from hermes_engine.profiles.places import lineage, soul_of
from hermes_engine.settings.addresses import OPENROUTER_URL, checked_url, password_of
from hermes_engine.settings.endpoints import Endpoint, EndpointSources, Overrides, Place, endpoint_for
from hermes_engine.settings.reading import YamlFile, check_settings, given, overlaid, parse_settings, read_yaml
from hermes_engine.settings.values import DEFAULT_MODEL, Mode, ReasoningEffort, Settings
from hermes_engine.toolsets import expand

NOT_ENABLED = "the toolset kanban is not enabled"
ENABLE_HINT = "hermes tools enable kanban (its tools cost tokens in every request)"

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\Z", re.IGNORECASE)
_SHORTEST_KEY = 4
_SHORTEST_SECRET = 8
_LONGEST_WORD = 20


@dataclass(frozen=True, slots=True)
class Resolved:
    """Everything decided before an agent exists.

    Attributes:
        home: where the files are.
        profile: name of the profile in use.
        settings: in effect.
        soul: standing instructions of the profile.
        warnings: unknown keys and the like, a line each.
        secrets: every key value known here, longest first, for redaction.
        sources: what decides about endpoints.
        mode_named: whether a flag or a file names the approval mode.
        profile_mode: the approval mode that the profile's own files name, None for none.
        profile_model: the model that they name, or that goes with an address of the profile's own, None for none.
        kanban: whether a file enables the board's tools; a flag alone does not, since they cost tokens.
        overrides: the flags it was made with.
        env: the process environment it was made with.
    """

    home: Home
    profile: str
    settings: Settings
    soul: str = field(repr=False)
    warnings: tuple[str, ...]
    secrets: tuple[str, ...] = field(repr=False)
    sources: EndpointSources
    mode_named: bool
    profile_mode: str | None
    profile_model: str | None
    kanban: bool
    overrides: Overrides
    env: Mapping[str, str] = field(repr=False)

    def endpoint_for(self, model: str | None = None) -> Endpoint:
        """The endpoint and key of a model; None: the one in effect. Raises NotConfigured or ConfigError."""
        return endpoint_for(self.sources, model)

    def mode_for(self, attended: bool) -> Mode:
        """The approval mode: as named; else `ask` where a person can answer, `auto` elsewhere."""
        if self.mode_named:
            return self.settings.approvals.mode
        return "ask" if attended else "auto"

    def with_profile(self, name: str, *, worker: bool = False) -> Resolved:
        """The same home and environment on another profile, for a child or worker.

        Flags speak of the agent they were typed for, so they do not pass on; address and key do, and the model below
        what the other profile itself says, unless that names an address of its own.

        Args:
            name: the other profile.
            worker: for a worker of a board, of which all flags but the tools' speak too, below what the profile itself
                says.
        """
        flags = self.overrides
        passed = Overrides(profile=name, model=flags.model, base_url=flags.base_url, api_key=flags.api_key)
        if worker:
            passed = replace(flags, profile=name, toolsets=None)
        other = resolve(passed, self.env, yielding=True)
        if other.sources.profile.env_url or other.sources.profile.config_url:
            own = replace(passed, base_url=None, api_key=None, model=None)
            other = resolve(own, self.env, yielding=True)
        return other


def resolve(
    overrides: Overrides | None = None, env: Mapping[str, str] | None = None, *, yielding: bool = False
) -> Resolved:
    """Reads the home and decides. No network, nothing written.

    Args:
        overrides: what the command line says.
        env: stands for the process environment (tests).
        yielding: what the profile's own files say stands above the command line.

    Raises:
        UsageError: an unknown profile, toolset, mode or effort on the command line.
        ConfigError: a file that is wrong; names file, line and key.
    """
    flags = overrides or Overrides()
    variables = dict(os.environ if env is None else env)
    home = Home.from_env(variables)
    home_file = read_yaml(home.config)
    warnings = list(check_settings(home_file))
    settings = parse_settings(home_file, Settings)
    name = flags.profile or variables.get("HERMES_PROFILE", "") or settings.profile
    chain = lineage(home, name)
    files: list[YamlFile] = []
    for place, _, found in chain:
        file = read_yaml(place.config)
        files.append(file)
        warnings += [*found, *check_settings(file)]
    values = given(home_file.values)
    own: dict[str, Any] = {}
    for file in reversed(files):
        own = overlaid(own, given(file.values))
    values = overlaid(values, own)
    kanban = "kanban" in parse_settings(YamlFile(home_file.path, values), Settings).toolsets
    if not kanban and flags.toolsets is not None and "kanban" in flags.toolsets:
        raise ConfigError(NOT_ENABLED, hint=ENABLE_HINT)
    flag_file = YamlFile(Path("command line"), _flag_values(flags))
    check_settings(flag_file)
    values = overlaid(values, flag_file.values)
    if yielding:
        values = overlaid(values, own)
    profile_env = read_dotenv(chain[0][0].dotenv, warnings) if chain and chain[0][0].dotenv else {}
    home_env = read_dotenv(home.dotenv, warnings)
    sources = EndpointSources(
        environment=_place("the environment", variables, ""),
        profile=_place(f"profile {name}", profile_env, _first_url(files)),
        home=_place(str(home.root), home_env, _first_url([home_file])),
        flag_url=checked_url(flags.base_url) if flags.base_url else "",
        flag_key=(flags.api_key or "").strip(),
        model=str(values.get("model") or DEFAULT_MODEL),
        model_named="model" in values,
    )
    with contextlib.suppress(ConfigError):  # told when a model is asked, which the demo model never needs
        values["base_url"] = checked_url(next((url for url in sources.named_urls() if url), OPENROUTER_URL))
    final = Settings.model_validate({**values, "profile": name})
    return Resolved(
        home=home,
        profile=name,
        settings=final,
        soul=soul_of(home, [place for place, _, _ in chain]),
        warnings=tuple(dict.fromkeys(warnings)),
        secrets=_secrets(sources, final.kanban.database_url or "", variables, profile_env, home_env),
        sources=sources,
        kanban=kanban,
        profile_mode=next((mode for file in files if (mode := _mode_in(file))), None),
        profile_model=final.model
        if own.get("model") or sources.profile.env_url or sources.profile.config_url
        else None,
        mode_named="mode" in values.get("approvals", {}),
        overrides=flags,
        env=variables,
    )


def _flag_values(flags: Overrides) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if flags.model:
        values["model"] = flags.model
    if flags.base_url:
        values["base_url"] = checked_url(flags.base_url)
    if flags.toolsets is not None:
        values["toolsets"] = expand(flags.toolsets)
    if flags.mode:
        values["approvals"] = {"mode": _one_of("mode", flags.mode, get_args(Mode))}
    if flags.reasoning_effort:
        effort = _one_of("reasoning effort", flags.reasoning_effort, get_args(ReasoningEffort))
        values["provider"] = {"reasoning_effort": effort}
    limits = {"max_turns": flags.max_turns, "max_cost_usd": flags.max_cost_usd}
    given_limits = {name: value for name, value in limits.items() if value is not None}
    if given_limits:
        values["limits"] = given_limits
    return values


def _mode_in(file: YamlFile) -> str | None:
    section = given(file.values).get("approvals")
    mode = section.get("mode") if isinstance(section, Mapping) else None
    return str(mode) if mode in get_args(Mode) else None


def _one_of(kind: str, value: str, valid: tuple[str, ...]) -> str:
    if value not in valid:
        raise UnknownName(kind, value, valid)
    return value


def _place(name: str, variables: Mapping[str, str], config_url: str) -> Place:
    return Place(
        name,
        env_url=variables.get("OPENAI_BASE_URL", "").strip(),
        config_url=config_url,
        openai_key=variables.get("OPENAI_API_KEY", "").strip(),
        openrouter_key=variables.get("OPENROUTER_API_KEY", "").strip(),
    )


def _first_url(files: list[YamlFile]) -> str:
    return next((str(url) for file in files if (url := file.values.get("base_url"))), "")


def _secrets(sources: EndpointSources, database: str, *environments: Mapping[str, str]) -> tuple[str, ...]:
    found = {value for value in (*_key_values(sources), password_of(database)) if len(value) >= _SHORTEST_KEY}
    for variables in environments:
        for name, value in variables.items():
            if _SECRET_NAME.search(name) and _looks_secret(value.strip()):
                found.add(value.strip())
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _looks_secret(value: str) -> bool:
    """Whether a value may be blotted out wherever it stands: no plain word, no path of a file."""
    if len(value) < _SHORTEST_SECRET or (value.isalpha() and len(value) < _LONGEST_WORD):
        return False
    return not (value.startswith(("/", "~/")) and expanded(value).exists())


def _key_values(sources: EndpointSources) -> Iterator[str]:
    yield sources.flag_key
    for place in sources.places:
        yield from (place.openai_key, place.openrouter_key)
    for url in sources.named_urls():
        yield password_of(url)
