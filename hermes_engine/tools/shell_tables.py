"""What is known of programs: which only read and how, which wrap others, which are touchy.

Data, most of it in `read_only_commands.txt`. A program that is not here asks where commands ask.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_USUAL_FOLDERS = frozenset(map(Path, ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")))


def program_of(word: str) -> str:
    """The name of a program: `/usr/bin/git` is git, `./git` is nobody we know and stays as it is."""
    path = Path(word)
    return path.name if "/" in word and path.parent in _USUAL_FOLDERS else word


@dataclass(frozen=True, slots=True)
class Reads:
    """How a program may be called so that it only reads.

    Attributes:
        short: letters of allowed one-letter options.
        long: allowed long options without dashes; abbreviations are not allowed.
        words: most words that are no options; None = any number.
        any_option: every option is harmless, also one that is not known before the run.
    """

    short: str = ""
    long: frozenset[str] = frozenset()
    words: int | None = None
    any_option: bool = False


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


@functools.cache
def reading_forms() -> Mapping[str, Reads]:
    """How programs, and subcommands ("git log"), are called so that they only read; from read_only_commands.txt."""
    text = Path(__file__).with_name("read_only_commands.txt").read_text("utf-8")
    forms: dict[str, Reads] = {}
    log: frozenset[str] = frozenset()
    for line in re.sub(r"\n +", " ", text).splitlines():
        if not line or line.startswith("#"):
            continue
        name, *fields = (field.strip() for field in line.split("|"))
        if name == "any option":
            forms.update(dict.fromkeys(fields[0].split(), Reads(any_option=True)))
        elif name == "tell their version":
            forms.update((f"{program} --version", Reads(words=0)) for program in fields[0].split())
        elif name == "log options":
            log = _set(fields[0])
        else:
            long = _set(fields[2])
            words = None if fields[1] == "any" else int(fields[1])
            forms[name] = Reads(fields[0], long | log if "@log" in long else long, words)
    return forms


FIND_TESTS = _set("""
    name iname path ipath wholename iwholename type xtype maxdepth mindepth size mtime mmin atime amin ctime
    cmin newer anewer cnewer newermt print print0 printf ls not o a and or empty regex iregex regextype user
    group nouser nogroup perm prune depth readable writable executable xdev mount follow links inum samefile
    quit true false daystart noleaf uid gid L H P lname ilname used ignore_readdir_race
    """)

SHELLS = _set("sh bash dash zsh ksh mksh ash fish csh tcsh rbash")
INTERPRETERS = _set("""
    python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua tclsh Rscript osascript pwsh
    awk gawk
    """)
FETCHERS = _set("""
    curl wget fetch aria2c http https xh lynx links w3m nc ncat netcat socat scp sftp ftp
    """)
DECODERS = _set("base64 base32 xxd openssl uudecode rev tr gpg zcat gunzip unxz")

WRAPPERS: dict[str, str] = {
    "env": "uSCa",
    "nice": "n",
    "ionice": "cnpPu",
    "nohup": "",
    "timeout": "ks",
    "time": "fo",
    "stdbuf": "ioe",
    "setsid": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "xargs": "IiLlnPsdEea",
    "sudo": "ugphCcDRrtTU",
    "doas": "uC",
    "watch": "n",
    "flock": "wE",
    "chrt": "pTPD",
    "taskset": "c",
    "unbuffer": "",
    "catchsegv": "",
    "strace": "eopsEuaOSIXbP",
    "ltrace": "eonpsua",
    "coproc": "",
    "chroot": "",
    "unshare": "",
    "nsenter": "tGSr",
    "pkexec": "u",
    "parallel": "jNIa",
    "proot": "rbw",
    "fakeroot": "",
    "script": "c",
    "busybox": "",
    "toybox": "",
}
"""Programs that run another one; with the letters of their options that take a value."""
ROOT_WRAPPERS = frozenset({"sudo", "doas", "pkexec", "su", "chroot", "nsenter", "unshare"})
CHANGING_WRAPPERS = _set("script watch parallel flock strace ltrace exec coproc chroot unshare")
MANY_IN_ONE = frozenset({"busybox", "toybox"})
"""Programs that are the one their first word names."""
WORDS_BEFORE: dict[str, int] = {"timeout": 1, "flock": 1, "chrt": 1, "taskset": 1, "chroot": 1}
"""Words of the wrapper's own that come before the wrapped command."""

SAFE_VARIABLES = _set("""
    LANG LC_ALL LC_CTYPE LC_COLLATE LC_NUMERIC LC_TIME LC_MESSAGES TZ COLUMNS LINES NO_COLOR FORCE_COLOR
    CLICOLOR TERM PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE CI DEBUG VERBOSE
    """)
"""Variables in capitals that change no program's deeds; small-letter names are the script's own."""

LOOKS_ONLY = _set("""
    ls dir stat test [ echo printf file du basename dirname realpath readlink cd pushd which type mkdir
    rmdir command
    """)
"""Programs that do not open the files they are given."""

WRITERS: dict[str, str] = {
    **dict.fromkeys(
        _set("""
    mv tee touch truncate chmod chown chgrp rm rmdir unlink shred mkdir patch chattr setfacl mknod mkfifo
    gzip gunzip ed ex vi vim nano sponge
    """),
        "all",
    ),
    **dict.fromkeys(_set("cp ln install rsync scp split"), "last"),
    "sed": "-i",
    "perl": "-i",
    "tar": "-C",
    "unzip": "-d",
    "curl": "-o",
    "wget": "-O",
}
"""Which of a program's words name what it changes: all, the last, all when `-i` is given, or the value of an option."""

RISKY: dict[str, str] = {
    **dict.fromkeys(_set("shutdown reboot halt poweroff telinit"), "it stops the machine"),
    **dict.fromkeys(_set("crontab at batch"), "it plans commands for later"),
    **dict.fromkeys(_set("iptables ip6tables nft ufw firewall-cmd"), "it changes the firewall"),
    **dict.fromkeys(
        _set("""
    useradd userdel usermod groupadd groupdel passwd chpasswd visudo adduser deluser chsh
    """),
        "it changes accounts",
    ),
    **dict.fromkeys(
        _set("""
    mount umount swapoff swapon losetup cryptsetup lvremove vgremove pvremove zpool
    """),
        "it changes disks",
    ),
    **dict.fromkeys(
        _set("fdisk sfdisk sgdisk gdisk parted wipefs blkdiscard hdparm badblocks"), "it changes partitions"
    ),
    **dict.fromkeys(_set("insmod rmmod modprobe sysctl kexec"), "it changes the running kernel"),
    **dict.fromkeys(_set("dropdb dropuser"), "it deletes a database"),
    **dict.fromkeys(_set("nc ncat netcat socat telnet"), "it opens a bare network connection"),
    "shred": "it destroys data beyond repair",
    "chattr": "it changes file protection",
    "twine": "it publishes to the world",
}
"""Programs that always need a yes, and why."""

RISKY_SUBCOMMANDS: dict[str, dict[str, str]] = {
    "npm": {"publish": "it publishes to the world", "unpublish": "it publishes to the world"},
    "yarn": {"publish": "it publishes to the world"},
    "pnpm": {"publish": "it publishes to the world"},
    "cargo": {"publish": "it publishes to the world", "yank": "it publishes to the world"},
    "gem": {"push": "it publishes to the world"},
    "poetry": {"publish": "it publishes to the world"},
    "uv": {"publish": "it publishes to the world"},
    "docker": {"system": "it deletes images and volumes", "volume": "it can delete volumes", "push": "it publishes"},
    "kubectl": {"delete": "it deletes from a cluster", "drain": "it empties a node"},
    "terraform": {"destroy": "it deletes infrastructure", "apply": "it changes infrastructure"},
    "helm": {"uninstall": "it deletes from a cluster", "delete": "it deletes from a cluster"},
    "systemctl": dict.fromkeys(
        _set("""
    start stop restart enable disable mask reboot poweroff halt kill daemon-reload isolate edit
    """),
        "it changes services",
    ),
    "service": {},
    "launchctl": dict.fromkeys(_set("load unload bootstrap bootout remove"), "it changes services"),
    "gh": {
        "repo": "it changes a repository on the server",
        "release": "it publishes to the world",
        "secret": "it changes secrets",
    },
    "aws": {"s3": "it changes what is stored in the cloud", "iam": "it changes accounts in the cloud"},
}

SUBCOMMANDED = _set("""
    git npm pnpm yarn cargo go docker podman kubectl pip pip3 uv poetry make just systemctl apt apt-get brew
    gh dotnet mvn gradle rails composer terraform helm conda hatch tox nox bundle rake mix flutter dart deno
    bun hermes aws gcloud az
    """)
"""Programs for which a remembered yes covers one subcommand, not all of them."""
RUNNERS = frozenset(
    {
        ("npm", "run"),
        ("pnpm", "run"),
        ("yarn", "run"),
        ("uv", "run"),
        ("poetry", "run"),
        ("hatch", "run"),
        ("python", "-m"),
        ("python3", "-m"),
        ("docker", "compose"),
        ("bundle", "exec"),
        ("cargo", "run"),
    }
)
EXACT_ONLY = SHELLS | INTERPRETERS | frozenset(WRAPPERS) | _set("find eval source . trap ssh dd sed npx uvx pipx bunx")
"""Programs for which a remembered yes covers only the very same words."""
