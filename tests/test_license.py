"""The licence that the package names is the one that comes with it."""

import tomllib

from tests.run.support import ROOT


def test_the_licence_is_the_one_that_the_package_names() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]
    assert (ROOT / "LICENSE").read_text().startswith(f"{named} License\n")
