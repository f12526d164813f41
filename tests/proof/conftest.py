"""Real environments for real trees, kept from session to session like releases."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest


@pytest.fixture(scope="session")
def kept_environments(_clean_world: None) -> Path:
    """Let ``vlmend verify`` find the environments that an earlier session has made."""
    named = os.environ.get("VLMEND_TEST_CACHE")
    place = Path(named) if named else platformdirs.user_cache_path("vlmend") / "tests"
    kept = place.absolute() / "verify"
    kept.mkdir(parents=True, exist_ok=True)
    link = Path(os.environ["VLMEND_CACHE_DIR"]) / "verify"
    if not link.exists():
        link.symlink_to(kept, target_is_directory=True)
    return kept
