"""Where profiles are and what each consists of: the user's own folders first, then the shipped templates.

A profile is a folder: `profile.yaml` (description, extends), `config.yaml` (settings over the home's),
`SOUL.md` (standing instructions) and `.env` (keys of this profile alone). Profile `default` is the home itself.
Only the user's own folders are ever written; a shipped one has no `.env`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.errors import ConfigError, UnknownName
from hermes_engine.paths import Home, shipped
from hermes_engine.settings.reading import check_settings, parse_settings, read_text, read_yaml
from hermes_engine.settings.values import DEFAULT_PROFILE, Section

FILES = ("profile.yaml", "config.yaml", "SOUL.md")
"""What a profile consists of besides its keys; what clone and export take."""


class ProfileFile(Section):
    """Content of `profile.yaml`."""

    description: str = ""
    """What this profile is good at: people and orchestrators choose by it."""
    extends: str | None = None
    """Profile whose settings and instructions hold where this one says nothing; its keys do not."""


@dataclass(frozen=True, slots=True)
class ProfilePlace:
    """One profile on disk.

    Attributes:
        name: as typed after `-p`.
        folder: holds its files; the home for `default`.
        own: the user's (True) or a shipped template.
    """

    name: str
    folder: Path
    own: bool

    @property
    def config(self) -> Path:
        """Its `config.yaml`, whether there is one or not."""
        return self.folder / "config.yaml"

    @property
    def soul(self) -> Path:
        """Its `SOUL.md`, whether there is one or not."""
        return self.folder / "SOUL.md"

    @property
    def dotenv(self) -> Path | None:
        """Its `.env`; None for a shipped one."""
        return self.folder / ".env" if self.own else None

    def read(self) -> tuple[ProfileFile, tuple[str, ...]]:
        """Its `profile.yaml` and warnings about unknown keys. Raises ConfigError."""
        file = read_yaml(self.folder / "profile.yaml")
        warnings = check_settings(file, ProfileFile)
        return parse_settings(file, ProfileFile), warnings


def default_place(home: Home) -> ProfilePlace:
    """Profile `default`: the home itself."""
    return ProfilePlace(DEFAULT_PROFILE, home.root, own=True)


def own_places(home: Home) -> Iterator[ProfilePlace]:
    """The user's own profiles but `default`, by name."""
    if home.profiles.is_dir():
        for folder in sorted(home.profiles.iterdir()):
            if folder.is_dir() and not folder.name.startswith(".") and folder.name != DEFAULT_PROFILE:
                yield ProfilePlace(folder.name, folder, own=True)


def shipped_places() -> Iterator[ProfilePlace]:
    """The templates that travel with the package, by name; `default` among them."""
    folder = shipped("profiles")
    if folder.is_dir():
        for item in sorted(folder.iterdir()):
            if (item / "profile.yaml").is_file():
                yield ProfilePlace(item.name, item, own=False)


def all_places(home: Home) -> list[ProfilePlace]:
    """Every profile that can be used, `default` first; an own one hides the shipped one of its name."""
    found = {place.name: place for place in shipped_places()}
    found |= {place.name: place for place in own_places(home)}
    found[DEFAULT_PROFILE] = default_place(home)
    return sorted(found.values(), key=lambda place: (place.name != DEFAULT_PROFILE, place.name))


def find_place(home: Home, name: str) -> ProfilePlace:
    """The profile of this name. Raises UnknownName, which lists those there are."""
    places = {place.name: place for place in all_places(home)}
    if name not in places:
        raise UnknownName("profile", name, places)
    return places[name]


def lineage(home: Home, name: str) -> list[tuple[ProfilePlace, ProfileFile, tuple[str, ...]]]:
    """The profile and what it extends, nearest first, without `default`.

    Raises:
        UnknownName: no profile of this name.
        ConfigError: it extends one that does not exist, or itself in a circle.
    """
    chain: list[tuple[ProfilePlace, ProfileFile, tuple[str, ...]]] = []
    current: str | None = name
    while current is not None and current != DEFAULT_PROFILE:
        if any(place.name == current for place, _, _ in chain):
            names = " → ".join([*(place.name for place, _, _ in chain), current])
            raise ConfigError(f"{chain[-1][0].folder / 'profile.yaml'}: extends goes in a circle: {names}")
        try:
            place = find_place(home, current)
        except UnknownName as error:
            if not chain:
                raise
            raise ConfigError(f"{chain[-1][0].folder / 'profile.yaml'}: extends: {error}", hint=error.hint) from None
        file, warnings = place.read()
        chain.append((place, file, warnings))
        current = file.extends
    return chain


def soul_of(home: Home, chain: list[ProfilePlace]) -> str:
    """The standing instructions: the nearest `SOUL.md` that says something, at last the shipped default's."""
    candidates = [place.soul for place in chain]
    candidates += [home.soul, shipped("profiles") / DEFAULT_PROFILE / "SOUL.md"]
    for path in candidates:
        text = (read_text(path) or "").strip()
        if text:
            return text
    return ""
