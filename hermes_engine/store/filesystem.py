"""Tells whether a path lies on a network file system, where SQLite's WAL does not work."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = re.compile(
    r"(nfs|cifs|smb|ncpfs|afs|coda|lustre|gpfs|ceph|glusterfs|ocfs2|gfs2|pvfs2|beegfs|davfs)\d*\Z"
    r"|fuse\.(?!fuse-overlayfs|ext4|bindfs|gocryptfs|encfs)"
)


def is_network(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether the nearest existing folder above `path` is on a network file system; False where unknown."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    target = os.path.realpath(path)
    best, kind = "", ""
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ", 1)[0]
    return bool(_NETWORK.match(kind))
