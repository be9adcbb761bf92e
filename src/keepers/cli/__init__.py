"""The command ``keepers``: the only package that prints."""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the command; says what to install if the extra is missing."""
    try:
        from keepers.cli.app import app
        from keepers.cli.console import make_streams_safe
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pydantic"):
            raise
        print(
            f'keepers: the command needs {error.name}. Install it with: pip install "keepers[cli]"',
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    make_streams_safe()
    app()
