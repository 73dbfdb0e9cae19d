"""Making, copying, renaming, removing and handing on profiles, on a real home."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
import yaml

from hermes_engine.errors import ConfigError, StateError, UsageError
from hermes_engine.paths import Home, shipped
from hermes_engine.profiles import (
    create,
    delete,
    describe,
    edit_toolsets,
    export,
    import_profile,
    list_profiles,
    rename,
    resolve,
    show,
    use,
)
from hermes_engine.settings import Overrides

BAD_NAMES = ["", ".", "..", "../../x", "/abs", "a/b", "a\0b", "a b", "-x", ".hidden", "é", "x" * 200, "a\n"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def names(home: Home) -> list[str]:
    return [info.name for info in list_profiles(home)]


def files_of(folder: Path) -> set[str]:
    return {str(item.relative_to(folder)) for item in folder.rglob("*")}


def test_shipped_profiles_are_listed_with_their_descriptions(home: Home) -> None:
    assert names(home) == ["default", "orchestrator", "reviewer"]
    assert all((info.description and not info.own) or info.name == "default" for info in list_profiles(home))
    assert [info.name for info in list_profiles(home) if info.chosen] == ["default"]
    for name in names(home):
        detail = show(home, name)
        assert detail.soul
        assert resolve(Overrides(profile=name), {"HERMES_HOME": str(home.root)}).warnings == ()
    assert not home.root.exists(), "looking creates nothing"


def test_a_profile_is_created_private(home: Home) -> None:
    old = os.umask(0)
    try:
        info = create(home, "coder", description="Writes code:\n tests # too", model="m1")
    finally:
        os.umask(old)
    assert (info.name, info.description, info.model, info.own) == ("coder", "Writes code: tests # too", "m1", True)
    folder = home.profiles / "coder"
    assert files_of(folder) == {"profile.yaml", "config.yaml"}
    assert {stat.S_IMODE(item.stat().st_mode) for item in folder.iterdir()} == {0o600}
    assert [stat.S_IMODE(item.stat().st_mode) for item in (home.root, home.profiles, folder)] == [0o700] * 3
    assert files_of(home.profiles) == {"coder", "coder/profile.yaml", "coder/config.yaml"}
    assert resolve(Overrides(profile="coder"), {"HERMES_HOME": str(home.root)}).settings.model == "m1"


@pytest.mark.parametrize("name", BAD_NAMES)
def test_f10_6_names_that_are_paths_are_refused(home: Home, tmp_path: Path, name: str) -> None:
    create(home, "mine")
    before = files_of(tmp_path)
    for act in (
        lambda: create(home, name),
        lambda: create(home, "new", clone=name),
        lambda: rename(home, "mine", name),
        lambda: rename(home, name, "new"),
        lambda: delete(home, name),
        lambda: describe(home, name, "x"),
        lambda: use(home, name),
        lambda: show(home, name),
        lambda: export(home, name, tmp_path / "out.tar.gz"),
        lambda: resolve(Overrides(profile=name or "."), {"HERMES_HOME": str(home.root)}),
    ):
        with pytest.raises(UsageError) as caught:
            act()
        assert caught.value.exit_code == 2
    assert files_of(tmp_path) == before


def test_default_and_taken_names_are_refused(home: Home) -> None:
    create(home, "mine")
    for name in ("default", "mine", "MINE"):
        with pytest.raises(UsageError):
            create(home, name)
    for act in (
        lambda: delete(home, "default"),
        lambda: rename(home, "default", "x"),
        lambda: describe(home, "default", "x"),
    ):
        with pytest.raises(UsageError, match="is the home itself"):
            act()
    for act in (lambda: delete(home, "reviewer"), lambda: describe(home, "reviewer", "x")):
        with pytest.raises(UsageError, match="shipped template"):
            act()


def test_a_shipped_name_makes_the_users_own_copy_which_wins(home: Home) -> None:
    info = create(home, "reviewer", model="m2")
    assert info.own
    assert info.description == show(Home(home.root / "other"), "reviewer").info.description
    assert (home.profiles / "reviewer/SOUL.md").read_text() == (shipped("profiles") / "reviewer/SOUL.md").read_text()
    resolved = resolve(Overrides(profile="reviewer"), {"HERMES_HOME": str(home.root)})
    assert (resolved.settings.model, resolved.settings.toolsets) == ("m2", ("terminal", "file"))
    describe(home, "reviewer", "mine now")
    assert show(home, "reviewer").info.description == "mine now"
    with pytest.raises(UsageError, match="already"):
        create(home, "reviewer")
    delete(home, "reviewer")
    assert show(home, "reviewer").info.own is False


def test_f6_6_a_copy_takes_settings_instructions_and_description_only(home: Home) -> None:
    create(home, "src", description="d", model="m")
    folder = home.profiles / "src"
    (folder / "SOUL.md").write_text("be brief\n")
    (folder / "config.yaml").write_text("# why\nmodel: m  # this\n")
    (folder / ".env").write_text("OPENAI_API_KEY=secret-of-src\n")
    for name in ("state.db", "MEMORY.md", "sessions/one.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("private")
    info = create(home, "copy", clone="src")
    assert info.description == "d"
    copied = home.profiles / "copy"
    assert files_of(copied) == {"profile.yaml", "config.yaml", "SOUL.md"}
    assert (copied / "config.yaml").read_text() == "# why\nmodel: m  # this\n"
    assert {stat.S_IMODE(item.stat().st_mode) for item in copied.iterdir()} == {0o600}
    assert create(home, "other", clone="src", description="e").description == "e"


def test_f6_6_a_copy_of_default_takes_the_homes_settings(home: Home) -> None:
    home.ensure()
    home.config.write_text("# mine\nmodel: m\nprofile: default\n")
    home.soul.write_text("soul")
    home.dotenv.write_text("OPENAI_API_KEY=secret-of-home\n")
    home.state_db.write_text("private")
    info = create(home, "copy", clone="default")
    assert info.description
    assert files_of(home.profiles / "copy") == {"profile.yaml", "config.yaml", "SOUL.md"}
    assert (home.profiles / "copy/config.yaml").read_text() == "# mine\nmodel: m\n"


def test_a_failed_create_leaves_nothing(home: Home) -> None:
    create(home, "src")
    (home.profiles / "src/config.yaml").write_text("model: [unclosed")
    before = files_of(home.root)
    with pytest.raises(ConfigError):
        create(home, "copy", clone="src", model="m")
    assert files_of(home.root) == before


def test_the_chosen_profile_is_remembered_and_follows(home: Home) -> None:
    home.ensure()
    home.config.write_text("model: m # keep\n")
    create(home, "one")
    assert use(home, "one").chosen
    assert home.config.read_text() == "model: m # keep\nprofile: one\n"
    assert resolve(env={"HERMES_HOME": str(home.root)}).profile == "one"
    rename(home, "one", "two")
    assert resolve(env={"HERMES_HOME": str(home.root)}).profile == "two"
    delete(home, "two")
    assert resolve(env={"HERMES_HOME": str(home.root)}).profile == "default"
    use(home, "reviewer")
    create(home, "reviewer")
    delete(home, "reviewer")
    assert resolve(env={"HERMES_HOME": str(home.root)}).profile == "reviewer"
    assert files_of(home.profiles) == set()


def test_rename_carries_heirs_and_delete_minds_them(home: Home) -> None:
    create(home, "base", model="m-base")
    create(home, "heir")
    (home.profiles / "heir/profile.yaml").write_text("description: d  # note\nextends: base\n")
    with pytest.raises(UsageError, match="is extended by heir"):
        delete(home, "base")
    rename(home, "base", "ground")
    assert (home.profiles / "heir/profile.yaml").read_text() == "description: d  # note\nextends: ground\n"
    assert resolve(Overrides(profile="heir"), {"HERMES_HOME": str(home.root)}).settings.model == "m-base"
    assert names(home) == ["default", "ground", "heir", "orchestrator", "reviewer"]


def test_a_broken_profile_keeps_no_other_from_its_change(home: Home) -> None:
    for name in ("base", "bad", "heir"):
        create(home, name)
    (home.profiles / "bad/profile.yaml").write_text("description: [x\n")
    (home.profiles / "heir/profile.yaml").write_text("extends: base\n")
    rename(home, "base", "ground")
    assert (home.profiles / "heir/profile.yaml").read_text() == "extends: ground\n"
    delete(home, "heir")
    delete(home, "ground")
    assert (home.profiles / "bad/profile.yaml").read_text() == "description: [x\n"
    assert names(home) == ["default", "bad", "orchestrator", "reviewer"]


def test_one_broken_profile_does_not_hide_the_others(home: Home) -> None:
    create(home, "good", description="g")
    create(home, "bad")
    (home.profiles / "bad/profile.yaml").write_text("- a list\n")
    (home.profiles / "stray-file").write_text("x")
    found = {info.name: info.description for info in list_profiles(home)}
    assert found["good"] == "g"
    assert found["bad"].startswith("cannot be used: ")
    assert "stray-file" not in found
    home.config.write_text("model: [unclosed")
    assert "good" in names(home)


def test_show_names_keys_and_never_their_values(home: Home) -> None:
    create(home, "p", description="d", model="m")
    (home.profiles / "p/.env").write_text("OPENAI_API_KEY=secret-of-p\n")
    detail = show(home, "p")
    assert detail.keys == ("OPENAI_API_KEY",)
    assert "secret-of-p" not in repr(detail)
    assert detail.settings == {"model": "m"}


def test_toolsets_of_a_shipped_profile_are_changed_in_an_own_copy(home: Home) -> None:
    inherited = ("terminal", "file")
    assert not edit_toolsets(home, "reviewer", inherited, enable=("file",)).changed
    assert not home.profiles.exists()
    change = edit_toolsets(home, "reviewer", inherited, enable=("web",))
    assert (change.after, change.path) == (("terminal", "file", "web"), home.profiles / "reviewer/config.yaml")
    change = edit_toolsets(home, "default", ("terminal", "file", "delegation"), disable=("delegation",))
    assert change.path == home.config
    assert yaml.safe_load(home.config.read_text()) == {"toolsets": ["terminal", "file"]}


# -- archives -----------------------------------------------------------------------------------------------------


def test_an_exported_profile_comes_back_without_secrets(home: Home, tmp_path: Path) -> None:
    create(home, "p", description="d", model="m")
    folder = home.profiles / "p"
    (folder / "SOUL.md").write_text("be brief\n")
    (folder / ".env").write_text("OPENAI_API_KEY=secret-of-p\n")
    (folder / "config.yaml").write_text(
        "# mine\nmodel: m\nbase_url: http://u:secret-url@h/v1\napi_key: secret-in-config\n"
        "provider:\n  extra_body: {token: secret-token, top_k: 4}\n"
    )
    path = export(home, "p", tmp_path)
    assert path == tmp_path / "p.tar.gz"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        assert sorted(archive.getnames()) == ["p/SOUL.md", "p/config.yaml", "p/profile.yaml"]
        assert all(b"secret" not in archive.extractfile(name).read() for name in archive.getnames())  # type: ignore[union-attr]
    other = Home(tmp_path / "other")
    info = import_profile(other, path)
    assert (info.name, info.description, info.model) == ("p", "d", "m")
    assert (other.profiles / "p/SOUL.md").read_text() == "be brief\n"
    assert (other.profiles / "p/config.yaml").read_text().startswith("# mine\nmodel: m\n")
    assert yaml.safe_load((other.profiles / "p/config.yaml").read_text())["provider"] == {"extra_body": {"top_k": 4}}
    assert {stat.S_IMODE(item.stat().st_mode) for item in (other.profiles / "p").iterdir()} == {0o600}
    with pytest.raises(UsageError, match="already"):
        import_profile(other, path)
    assert import_profile(other, path, name="q").name == "q"
    with pytest.raises(UsageError, match="exists already"):
        export(home, "p", path)
    with pytest.raises(StateError, match="cannot be written"):
        export(home, "p", tmp_path / "no-such-folder" / "p.tar.gz")


def packed(path: Path, *members: tuple[tarfile.TarInfo | str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


GOOD = ("p/profile.yaml", b"description: d\n")


@pytest.mark.parametrize(
    "members",
    [
        (),
        (("../profile.yaml", b""),),
        (("/p/profile.yaml", b""),),
        (("p/../../profile.yaml", b""),),
        (("../p/profile.yaml", b""),),
        (("profile.yaml", b""),),
        (GOOD, ("q/config.yaml", b"")),
        (GOOD, ("p/.env", b"OPENAI_API_KEY=x")),
        (GOOD, ("p/deep/config.yaml", b"")),
        (GOOD, ("p/state.db", b"")),
        (GOOD, (link("p/config.yaml", "/etc/passwd"), b"")),
        (GOOD, ("p/config.yaml", b"#" * 1_100_000)),
        tuple((f"p/{number}", b"") for number in range(30)),
        (("default/profile.yaml", b"description: d\n"),),
        ((".hidden/profile.yaml", b"description: d\n"),),
    ],
)
def test_f10_6_an_archive_with_anything_else_is_refused_whole(
    home: Home, tmp_path: Path, members: tuple[tuple[tarfile.TarInfo | str, bytes], ...]
) -> None:
    path = packed(tmp_path / "a.tar.gz", *members)
    before = files_of(tmp_path)
    with pytest.raises(UsageError) as caught:
        import_profile(home, path)
    assert caught.value.exit_code == 2
    assert files_of(tmp_path) - before <= {"home", "home/profiles"}


@pytest.mark.parametrize("data", [b"", b"not an archive", b"\x1f\x8b\x08\x00broken"])
def test_what_is_no_archive_is_refused(home: Home, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(data)
    with pytest.raises(UsageError, match="is not an exported profile"):
        import_profile(home, tmp_path / "a.tar.gz")
    with pytest.raises(UsageError, match="there is no file"):
        import_profile(home, tmp_path / "none.tar.gz")


def test_wrong_settings_in_an_archive_name_the_archive(home: Home, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar.gz", GOOD, ("p/config.yaml", b"limits:\n  max_turns: abc\n"))
    with pytest.raises(ConfigError, match=r"a\.tar\.gz: config\.yaml:2: limits\.max_turns"):
        import_profile(home, path)
    assert files_of(home.profiles) == set()
