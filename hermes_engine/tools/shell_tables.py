"""What is known of programs: which only read, and with which options; which wrap others; which are touchy.

Data only. A program that is not here runs like any other: it asks where commands ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_USUAL_FOLDERS = frozenset(map(Path, ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")))


def program_of(word: str) -> str:
    """The name of a program: `/usr/bin/git` is git, `./git` is nobody we know and stays as it is."""
    path = Path(word)
    return path.name if "/" not in word or path.parent in _USUAL_FOLDERS else word


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


def _reads(short: str = "", long: str = "", words: int | None = None) -> Reads:
    return Reads(short, frozenset(long.split()), words)


_ANY = Reads(any_option=True)

READ_ONLY: dict[str, Reads] = {
    **dict.fromkeys(
        _set("""
    ls dir vdir cat tac head tail wc pwd echo true false test [ stat du df basename dirname realpath
    readlink whoami id groups uname uptime free ps pgrep pidof nproc arch lscpu lsblk lsusb lspci lsmod tty
    which type cmp diff comm cut tr nl fold fmt column paste join rev seq expr factor strings od hexdump
    md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum grep egrep fgrep zgrep printenv
    locale getconf getent numfmt sleep : cd pushd popd dirs exit return break continue shift wait times
    umask hash jq tokei help yes logname users who w last vmstat iostat zcat bzcat xzcat look nm size
    readelf objdump pstree
    """),
        _ANY,
    ),
    "printf": _reads(words=None),
    "date": _reads("duRIr", "utc universal rfc-email iso-8601 rfc-3339 date reference"),
    "hostname": _reads("fsiIdA", "fqdn short ip-address all-ip-addresses domain", 0),
    "file": _reads("bikLhNrsz0", "brief mime mime-type mime-encoding dereference no-dereference"),
    "uniq": _reads("cdDufswiz", "count repeated unique ignore-case all-repeated skip-fields skip-chars", 1),
    "xxd": _reads("abceEgilnopsuC", "", 1),
    "base64": _reads("dDiw", "decode ignore-garbage wrap"),
    "base32": _reads("dDiw", "decode ignore-garbage wrap"),
    "sort": _reads(
        "bdfghMnRrVcCmsukztS",
        """
    reverse numeric-sort general-numeric-sort human-numeric-sort unique key field-separator ignore-case
    version-sort stable zero-terminated check month-sort random-sort dictionary-order
    """,
    ),
    "rg": _reads(
        "niwlcvoABCegtTFxSsuLHNUPaqm0.j",
        """
    line-number ignore-case word-regexp files-with-matches files-without-match count invert-match
    only-matching after-context before-context context regexp glob type type-not fixed-strings smart-case
    hidden no-ignore files sort max-count max-depth no-heading heading color multiline json stats pcre2
    no-line-number with-filename no-filename replace column vimgrep iglob type-list follow text trim null
    case-sensitive line-regexp max-columns
    """,
    ),
    "fd": _reads(
        "HIuegsiaL0dtEp1qF",
        """
    hidden no-ignore extension glob type max-depth exclude full-path absolute-path follow case-sensitive
    ignore-case print0 color fixed-strings min-depth size changed-within changed-before
    """,
    ),
    "tree": _reads(
        "adfiLPIpughDsCFrtcUvnqxQN",
        "dirsfirst noreport gitignore prune charset sort du si filelimit matchdirs filesfirst",
    ),
    "command": _reads("vV"),
    "set": _reads("euxo"),
    "yq": _reads("rePjyoMCNnc", "output-format prettyPrint no-colors colors no-doc null-input raw-output", None),
    "man": _reads("kfw", ""),
}
"""Programs that only read when called as told. Those whose subcommand decides are in SUBCOMMANDS."""

_LOG = """
    oneline stat shortstat numstat name-only name-status graph decorate no-decorate all branches tags
    remotes since until after before author committer grep all-match invert-grep format pretty date abbrev
    abbrev-commit no-abbrev-commit follow patch no-patch reverse merges no-merges first-parent max-count
    skip color no-color unified word-diff cached staged ignore-all-space ignore-space-change
    ignore-blank-lines check summary raw full-index find-renames find-copies diff-filter minimal histogram
    patience diff-algorithm function-context left-right cherry-pick topo-order date-order no-ext-diff
    no-textconv exit-code quiet merge-base no-renames relative text binary submodule show-signature
    left-only right-only cherry simplify-by-decoration not clear-decorations pickaxe-regex pickaxe-all
    no-color-moved
    """
_GIT = {
    "status": _reads(
        "sbuzv", "short branch porcelain long untracked-files ignored show-stash ahead-behind verbose column"
    ),
    "log": _reads("pnuSGLiEFUwbMCzcmt0123456789s", _LOG),
    "show": _reads("pnuSGUwbMCzcmts", _LOG),
    "diff": _reads("puSGUwbMCzaRs", _LOG),
    "diff-tree": _reads("pnrstuMCzm", _LOG),
    "diff-index": _reads("pnrstuMCzm", _LOG),
    "whatchanged": _reads("pn", _LOG),
    "shortlog": _reads("snce", "summary numbered email all no-merges since until group"),
    "blame": _reads("LwMCelstnfpc", "porcelain line-porcelain show-email since date root incremental abbrev"),
    "annotate": _reads("L"),
    "ls-files": _reads(
        "cdmosuktvzi", "cached deleted modified others stage unmerged exclude-standard full-name error-unmatch"
    ),
    "ls-tree": _reads("drtlz", "name-only name-status long full-name full-tree object-only abbrev"),
    "rev-parse": _reads(
        "q",
        """
    show-toplevel abbrev-ref short verify git-dir is-inside-work-tree show-prefix show-cdup all symbolic
    symbolic-full-name absolute-git-dir git-common-dir is-bare-repository quiet
    """,
    ),
    "rev-list": _reads(
        "n", "count all max-count left-right since until no-merges merges parents first-parent reverse not"
    ),
    "describe": _reads("", "tags all always dirty long abbrev match exact-match contains first-parent exclude"),
    "cat-file": _reads("pste", "batch batch-check"),
    "grep": _reads(
        "niwlcvoABCeEFGPIqrhHpW",
        """
    line-number ignore-case word-regexp files-with-matches count invert-match cached untracked no-index
    context after-context before-context heading break show-function and or not
    """,
    ),
    "merge-base": _reads("a", "all is-ancestor fork-point octopus independent"),
    "name-rev": _reads("", "name-only tags refs all always"),
    "for-each-ref": _reads("", "format sort count contains merged no-merged points-at"),
    "show-ref": _reads("sdq", "heads tags head verify hash dereference quiet branches"),
    "count-objects": _reads("vH", "verbose human-readable"),
    "check-ignore": _reads("vnq", "verbose non-matching no-index quiet"),
    "var": _reads("l"),
    "version": _reads("", "build-options"),
    "help": _reads("ag"),
    "branch": _reads(
        "arvl",
        """
    all remotes verbose list show-current contains no-contains merged no-merged sort format points-at column
    color no-color
    """,
        0,
    ),
    "tag": _reads("ln", "list contains merged no-merged points-at sort format", 0),
    "remote": _reads("v", "verbose", 0),
    "reflog": _reads("n", "all date format pretty oneline max-count", 0),
    "stash list": _reads("n", _LOG),
    "stash show": _reads("pu", _LOG),
    "remote show": _reads("n", "", 1),
    "remote get-url": _reads("", "all push", 1),
    "config --get": _reads("", "global local system show-origin", 1),
    "config --list": _reads("z", "global local system show-origin", 0),
    "config -l": _reads("z", "global local system show-origin", 0),
    "config --get-all": _reads("", "", 1),
    "config get": _reads("", "all show-origin", 1),
    "config list": _reads("", "show-origin", 0),
    "worktree list": _reads("v", "porcelain verbose", 0),
    "submodule status": _reads("", "recursive cached"),
    "reflog show": _reads("n", _LOG),
    "branch --list": _reads("arv", "sort format", None),
    "tag -l": _reads("n", "sort format", None),
    "tag --list": _reads("n", "sort format", None),
}

SUBCOMMANDS: dict[str, dict[str, Reads]] = {
    "git": _GIT,
    "pip": {
        "list": _reads("o", "outdated format user not-required local"),
        "show": _reads("f", "files"),
        "freeze": _reads("l", "local user all"),
        "check": _reads(),
        "--version": _reads(),
    },
    "npm": {
        "ls": _reads("ag", "all depth global json long"),
        "list": _reads("ag", "all depth global json long"),
        "--version": _reads(),
        "-v": _reads(),
        "root": _reads("g"),
        "prefix": _reads("g"),
    },
    "docker": {
        "ps": _reads("aqn", "all quiet filter format no-trunc last"),
        "images": _reads("aq", "all quiet format"),
        "version": _reads("", "format"),
        "info": _reads(),
        "inspect": _reads("f", "format"),
        "--version": _reads(),
        "logs": _reads("ftn", "tail since until timestamps"),
    },
    "cargo": {
        "--version": _reads(),
        "-V": _reads(),
        "tree": _reads("ie", "depth invert"),
        "metadata": _reads("", "no-deps format-version"),
    },
    "go": {"version": _reads(), "env": _reads("", "json")},
    "uv": {"--version": _reads(), "version": _reads(), "tree": _reads()},
    "systemctl": {
        "status": _reads("n", "no-pager lines"),
        "is-active": _reads(),
        "is-enabled": _reads(),
        "list-units": _reads("", "all type state no-pager"),
        "show": _reads("p", "property"),
    },
    **{
        name: {"--version": _reads(words=1), "-V": _reads(words=1), "-v": _reads(words=1), "version": _reads(words=1)}
        for name in (
            _set("""
    python python3 node ruby perl php java javac gcc g++ clang make cmake rustc ruff mypy pytest black tsc
    deno bun yarn pnpm poetry gh kubectl terraform helm sqlite3 psql bash zsh
    """)
        )
    },
}
"""Programs whose subcommand decides. A subcommand of two words is looked for first."""

FIND_TESTS = _set("""
    name iname path ipath wholename iwholename type xtype maxdepth mindepth size mtime mmin atime amin ctime
    cmin newer anewer cnewer newermt print print0 printf ls not o a and or empty regex iregex regextype user
    group nouser nogroup perm prune depth readable writable executable xdev mount follow links inum samefile
    quit true false daystart noleaf uid gid L H P lname ilname used ignore_readdir_race
    """)

SHELLS = _set("sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox")
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
}
"""Programs that run another one; with the letters of their options that take a value."""
ROOT_WRAPPERS = frozenset({"sudo", "doas", "pkexec", "su", "chroot", "nsenter", "unshare"})
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
