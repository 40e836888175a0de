"""The command `mulv`: one file per command."""

from mulv.cli.main import main

__all__ = ["main"]
