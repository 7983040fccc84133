# SPDX-License-Identifier: Apache-2.0
"""A substitute for the service's judge: compares words without a language model, and says so in its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import long_words, words

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

_RULE = (
    "The sandbox has no language model: a change is meaningful if it shares a word of at least four letters with the "
    "goal."
)


def judge(goal: str, removed: list[str], added: list[str]) -> Json:
    """Judge removed and added lines against a goal."""
    wanted = long_words(goal)
    changes: list[Json] = []
    for kind, lines in (("removed", removed), ("added", added)):
        for line in lines:
            shared = sorted(wanted & set(words(line)))
            if shared:
                before, after = (line, None) if kind == "removed" else (None, line)
                reason = f"Shares with the goal: {', '.join(shared)}."
                changes.append({"type": kind, "before": before, "after": after, "reason": reason})
    return {"meaningful": bool(changes), "confidence": "low", "reason": _RULE, "meaningfulChanges": changes}
