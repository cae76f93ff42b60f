"""Commands of which "always allow" may mean any further words: they stay what they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A line is words; ``a|b`` is one of them, NAME a plain name. What runs other programs, publishes,
# reaches out or throws work away is not here: of that only the very command can be allowed.
TABLE = """
git add|commit|merge|mv|tag|cherry-pick|revert
npm|pnpm|yarn|bun test
npm|pnpm run NAME
yarn|bun run build|check|dev|format|lint|start|test|typecheck
cargo build|check|test|clippy|fmt|doc|bench
go build|test|vet|fmt
dotnet build|test
docker ps|images|logs|inspect|version|info
kubectl get|describe NAME
kubectl logs|top|version|explain
gh pr|issue|run|release view|list|diff|status|checks|watch
make|just|rake NAME
pip list|show|freeze|check
"""
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
HEADS = [line.split() for line in TABLE.strip().splitlines()]


def prefix_of(texts: Sequence[str | None]) -> list[str]:
    """The words at the beginning of a command that say what it does; none where all matter."""
    for wanted in HEADS:
        head = [text for text in texts[: len(wanted)] if text is not None]
        if len(head) == len(wanted) and all(map(_is_one, head, wanted)):
            return head
    return []


def _is_one(text: str, wanted: str) -> bool:
    if wanted == "NAME":
        return PLAIN.fullmatch(text) is not None and "secret" not in text
    return text in wanted.split("|")
