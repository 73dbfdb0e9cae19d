"""Fixtures of the batch tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.batch.ray_cluster import Cluster, whole_cluster


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A Ray cluster of two nodes that nobody else uses meanwhile."""
    pytest.importorskip("ray", reason="Ray is not installed: make test does it where the package index has it")
    base = tmp_path_factory.getbasetemp()
    with whole_cluster(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as made:
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
            monkeypatch.setenv(name, made.env[name])
        yield made
