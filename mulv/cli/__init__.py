"""The command `mulv`: one file a command."""

from mulv.cli.main import main

__all__ = ["main"]
