"""The environment commands get: the person's own without keys, and nothing that waits for a keyboard.

It is made anew for each call: what a command exports ends with it. Only the working directory is carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(
    r"(^|_)(API_?KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|PRIVATE_KEY|ACCESS_KEY|"
    r"ACCESS_KEY_ID|SECRET_KEY|SIGNING_KEY|ENCRYPTION_KEY|DSN)$"
)
_PROVIDERS = re.compile(
    r"^(OPENAI|ANTHROPIC|OPENROUTER|AZURE_OPENAI|GEMINI|GROQ|MISTRAL|DEEPSEEK|XAI|TOGETHER|FIREWORKS|COHERE|"
    r"PERPLEXITY|CEREBRAS|HUGGINGFACE|HERMES)_"
)
_NOT_SECRET = frozenset({"SSH_AUTH_SOCK", "XAUTHORITY"})

QUIET: Mapping[str, str] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
}
"""No pager, no editor, no password question, no cursor codes."""

_GIT_OFF = (("core.fsmonitor", "false"),)
"""A setting with which a repository could run a program of its own at a mere `git status`. Others cannot be
switched off for all commands; the judging of commands looks for them."""


def command_env(environ: Mapping[str, str], *, pass_env: Iterable[str] = ()) -> dict[str, str]:
    """What a command sees of `environ`.

    Args:
        environ: the program's own environment.
        pass_env: names handed on although they look like secrets.
    """
    passed = frozenset(pass_env)
    env = {name: value for name, value in environ.items() if name in passed or not looks_secret(name)}
    for name in ("BASH_ENV", "ENV", "GIT_ASKPASS", "SSH_ASKPASS", "POSIXLY_CORRECT", "OLDPWD"):
        env.pop(name, None)
    env.update(QUIET)
    taken = env.get("GIT_CONFIG_COUNT", "0")
    first = int(taken) if taken.isdecimal() else 0
    for place, (key, value) in enumerate(_GIT_OFF, first):
        env[f"GIT_CONFIG_KEY_{place}"], env[f"GIT_CONFIG_VALUE_{place}"] = key, value
    env["GIT_CONFIG_COUNT"] = str(first + len(_GIT_OFF))
    return env


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is kept from commands."""
    upper = name.upper()
    return upper not in _NOT_SECRET and bool(_SECRET_NAME.search(upper) or _PROVIDERS.match(upper))
