"""Generates the blocking Python client from the asynchronous one: python3 scripts/blocking-client.py [FOLDER]

Without a folder it writes shared/client-python/agent_engine/_blocking, which git keeps. The test of the conformance kit passes one, and
compares. It needs the packages of `node scripts/local-services.ts ensure python-client` in PYTHONPATH.
"""

import sys
from pathlib import Path

from unasync import Rule

PACKAGE = Path(__file__).parent.parent / "shared/client-python/agent_engine"
SOURCE = PACKAGE / "_async"
RENAMED = {"_async_io": "_blocking_io", "aclose": "close"}
HEAD = "# Generated from ../_async/{} by scripts/blocking-client.py: edit that file instead.\n"


class Blocking(Rule):  # type: ignore[misc]
    def _unasync_name(self, name: str) -> str:
        """`AsyncRun` becomes `Run`."""
        renamed: str = super()._unasync_name(name)
        return name.removeprefix("Async") if renamed == f"Sync{name[5:]}" else renamed


def main(target: Path) -> None:
    sources = sorted(SOURCE.glob("*.py"))
    rule = Blocking(f"{SOURCE}/", f"{target}/", RENAMED)
    for source in sources:
        rule._unasync_file(str(source))
        made = target / source.name
        made.write_text(HEAD.format(source.name) + made.read_text())
    for made in target.glob("*.py"):
        if not (SOURCE / made.name).exists():
            made.unlink()


main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE / "_blocking")
