"""What the results depend on besides the study: machine, versions, commit."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["environment_facts", "package_versions"]

_PACKAGES = ("keepers", "numpy", "scipy", "scikit-learn", "joblib")


def environment_facts() -> dict[str, Any]:
    """Facts that tell two machines apart, and none that tell two people apart."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": _cores(),
        "versions": package_versions(),
        "commit": _commit(),
    }


def package_versions() -> dict[str, str]:
    """Versions of keepers and of what it computes with."""
    return {name: _version(name) for name in _PACKAGES}


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else "unknown"


def _commit() -> str | None:
    """The commit of the sources, if they are a checkout."""
    here = Path(__file__).resolve().parent
    if not (here.parents[2] / ".git").exists():
        return None
    try:
        changed = _git("status", "--porcelain", cwd=here)
        return _git("rev-parse", "--short=12", "HEAD", cwd=here) + (" with changes" * bool(changed))
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str, cwd: Path) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
