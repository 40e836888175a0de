"""`python -m mulv` is the command `mulv`."""

from mulv.cli import main

main()
