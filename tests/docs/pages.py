"""The pages whose blocks are run."""

from tests.services import ROOT

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
README = ROOT / "README.md"
PAGES = [README, *GUIDE]
