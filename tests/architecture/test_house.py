"""The rules of the house that a linter does not know: floors, sizes, words."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("hermes_engine", "hermes_tui")
LONGEST = 400
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEXTS = sorted(
    path
    for folder in (".", "docs", "profiles", "examples", "bench", ".ci", *PACKAGES, "tests")
    for path in ((ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*"))
    if path.suffix in {".py", ".md", ".toml", ".yaml", ".tcss", ".txt", ".cfg"} and "__pycache__" not in path.parts
)


def name(path: Path) -> str:
    """The path as it is shown."""
    return str(path.relative_to(ROOT))


def lines(path: Path) -> int:
    """How many lines a file has."""
    return path.read_text().count("\n")


def test_the_floors_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_no_file_is_long() -> None:
    long = {name(path): lines(path) for path in SOURCES + TESTS if lines(path) > LONGEST}
    assert long == {}


def test_the_usual_file_is_short() -> None:
    sizes = sorted(lines(path) for path in SOURCES if path.name != "__init__.py")
    assert statistics.median(sizes) <= 160
    assert sizes[int(len(sizes) * 0.9)] <= 300


def test_the_app_and_its_style_sheets_are_short() -> None:
    app = ROOT / "hermes_tui" / "app.py"
    assert lines(app) <= 250
    sheets = {name(path): lines(path) for path in (ROOT / "hermes_tui").rglob("*.tcss")}
    assert {path: size for path, size in sheets.items() if size > 150} == {}


def test_no_unfinished_work_and_no_silenced_test() -> None:
    words = ["TO" + "DO", "FIX" + "ME", "X" * 3, r"pytest\.mark\.sk" + "ip", "x" + "fail", "raise NotImpl" + "emented"]
    pattern = re.compile("|".join(rf"\b{word}" for word in words))
    assert [name(path) for path in TEXTS if path.suffix == ".py" and pattern.search(path.read_text())] == []


def test_no_names_that_say_nothing() -> None:
    vague = re.compile(r"(Man" + r"ager|Hel" + r"per|Util" + r"s?)\Z")
    found = [
        f"{name(path)}: {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and vague.search(node.name)
    ]
    assert found == []


def test_no_path_of_one_machine_is_written_down() -> None:
    folders = "|".join(("main", "shared", "seed", r"\.library"))
    pattern = re.compile(rf"/wo{'rk'}/(?:{folders})\b|pypi\.o{'rg'}|files\.pythonho{'sted'}")
    assert [name(path) for path in TEXTS if pattern.search(path.read_text())] == []


def _statements(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), name(path)


ANSWERING_A_PIPE = {"hermes_engine/tools/search_match.py"}
"""Processes of our own whose standard output is read by the engine, never by a person."""

SPEAKING = {
    "print",
    "sys.stdout.write",
    "sys.stderr.write",
    "sys.stdout.buffer.write",
    "click.echo",
    "click.secho",
}


def test_text_leaves_through_printing_only() -> None:
    found = [
        f"{name(path)}:{node.lineno}"
        for path in SOURCES
        if "printing" not in path.parts and name(path) not in ANSWERING_A_PIPE
        for node in _statements(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SPEAKING
    ]
    assert found == []


def test_every_setting_is_documented() -> None:
    tree = ast.parse((ROOT / "hermes_engine" / "settings" / "values.py").read_text())
    bare = []
    for section in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
        for node, after in zip(section.body, [*section.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and not (
                isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            ):
                bare.append(f"{section.name}.{ast.unparse(node.target)}")
    assert bare == []
