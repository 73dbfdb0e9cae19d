"""Judging shell commands against bash itself: what bash reads, and what it would do, in any dress.

What is run here are `printf`, and commands that were judged to only read, in a folder of their own.
"""

from __future__ import annotations

import itertools
import shlex
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_engine.tools.shell_parse import parse
from hermes_engine.tools.shell_rules import judge
from tests.tools.test_shell_rules import HOME, PROJECT, PROTECTED, kind

QUOTES = [
    lambda text: "'" + text + "'",
    lambda text: '"' + text + '"',
    lambda text: "".join("\\" + char for char in text),
    lambda text: "$'" + "".join(f"\\x{ord(char):02x}" for char in text) + "'",
    lambda text: text[:1] + "''" + text[1:],
    lambda text: text[:1] + '""' + text[1:],
    lambda text: text[:1] + "\\\n" + text[1:],
    lambda text: text,
]
AROUND = [
    "{}",
    "true; {}",
    "true && {}",
    "(  {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "echo $({})",
    "! {}",
    "{} &",
    "\n{}\n",
]
OUTSIDE = [
    "{}",
    "sudo {}",
    "env {}",
    "nohup {}",
    "command {}",
    "nice {}",
    "time {}",
    "exec {}",
    "timeout 9 {}",
    "xargs {}",
]


@given(
    st.tuples(st.sampled_from(QUOTES), st.sampled_from(QUOTES), st.sampled_from(QUOTES)),
    st.sampled_from([("rm", "-rf", "/"), ("rm", "-r", "/*"), ("find", "/", "-delete"), ("mkfs.ext4", "/dev/sda", "")]),
    st.sampled_from(AROUND),
    st.sampled_from(OUTSIDE),
    st.sampled_from([" ", "  ", "\t", "${IFS}", "$IFS"]),
)
@settings(max_examples=400, deadline=None)
def test_a_forbidden_command_in_any_dress_never_only_reads(
    quotes: tuple[object, ...], words: tuple[str, str, str], around: str, outside: str, blank: str
) -> None:
    dressed = blank.join(quote(word) for quote, word in zip(quotes, words, strict=True) if word)  # type: ignore[operator]
    command = around.format(outside.format(dressed))
    assert kind(command) in ("risky", "forbidden"), command


PIECES = st.sampled_from(
    [
        "a",
        "b c",
        "'d e'",
        '"f g"',
        "\\ ",
        "$'\\n'",
        "$'\\x41'",
        '"\\""',
        "\\'",
        "''",
        '""',
        "x=y",
        "-n",
        "#",
        "é",
        "~/z",
        "\\\n",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_words_are_those_that_bash_sees(pieces: list[str]) -> None:
    command = "printf '%s\\0' start " + "".join(pieces) + " end"
    script = parse(command, home=HOME, cwd=PROJECT)
    ours = [word.text for word in script.commands[0].words[3:]]
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={"HOME": str(HOME)}, check=False)
    theirs = ran.stdout.split("\0")[1:-1]
    if not script.broken and not any("\0" in word for word in ours):
        assert ours == theirs, command


SOUP = (
    "touch canary¦touch¦ canary¦ls¦echo¦cat¦true¦ ¦ ¦ ¦\n¦;¦|¦&&¦||¦'¦\"¦\\¦\\ ¦\\\n¦#¦$(¦`¦( ls¦)¦{ ¦; }¦<<E\n¦\nE\n"
    "¦<<'E'\n¦>¦>>¦2>¦/dev/null¦$¦$'¦\\'¦if true; then ¦; fi¦! ¦=¦x=¦${x:-¦}¦<(¦<<<¦*¦[[ ¦ ]]¦$((¦))¦for i in a; do "
    "¦; done¦case a in a) ¦;; esac¦time ¦env ¦xargs ¦bash -c ¦sh -c '¦eval ¦~¦é¦\t¦!¦&>¦-¦{a,b}"
)
CANARY = st.sampled_from(list(SOUP.split("¦")))


@given(tokens=st.lists(CANARY, min_size=1, max_size=14))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_judged_to_only_read_leaves_the_folder_as_it_was(
    tokens: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    command = "".join(tokens)
    folder = tmp_path_factory.mktemp("canary")
    if judge(command, folder, PROTECTED).kind == "read_only":
        subprocess.run(
            ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        )
        assert list(folder.iterdir()) == [], command
    folder.rmdir()


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    assert kind(text) in ("read_only", "plain", "risky", "forbidden")


@given(
    st.lists(
        st.sampled_from(
            ["rm", "-rf", "/", "x", ";", "|", "&&", "(", ")", "'", '"', "$", "`", "<<E", "\n", ">", "&", "{", "}"]
        )
    )
)
@settings(max_examples=400, deadline=None)
def test_soup_that_bash_would_delete_with_is_never_read_only(tokens: list[str]) -> None:
    command = " ".join(tokens)
    parts = [
        list(group)
        for key, group in itertools.groupby(tokens, lambda token: token in (";", "|", "&&", "\n", "&"))
        if not key
    ]
    plain = all(token.isalnum() or token in ("-rf", "/", ";", "|", "&&", "\n", "&") for token in tokens)
    if plain and any(part[:3] == ["rm", "-rf", "/"] for part in parts):
        assert kind(command) in ("forbidden", "risky"), shlex.quote(command)
