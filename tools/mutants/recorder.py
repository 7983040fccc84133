# SPDX-License-Identifier: Apache-2.0
"""The trampoline that mutated modules import to select a mutant. It records the functions that each test reaches.

Processes that tests start record functions too, in the same file.
"""

from __future__ import annotations

import functools
import mmap
import os

from mutmut.mutation import trampoline
from mutmut.mutation.trampoline import MutantDict, wrap_in_trampoline

__all__ = ["MutantDict", "wrap_in_trampoline"]

# The variable has the path of a folder with `test`, the number of the running test, and `hits`, a line per test and
# function.
FOLDER = "MUTANTS_HITS"
SIZE = 4

_seen: set[tuple[bytes, str]] = set()


@functools.cache
def _files() -> tuple[mmap.mmap, int] | None:
    if (folder := os.environ.get(FOLDER)) is None:
        return None
    test = mmap.mmap(os.open(f"{folder}/test", os.O_RDONLY), SIZE, prot=mmap.PROT_READ)
    return test, os.open(f"{folder}/hits", os.O_WRONLY | os.O_APPEND)


def _record(name: str, **_: object) -> None:
    if (files := _files()) is None:
        return
    test, hits = files
    hit = (test[:SIZE], name)
    if hit not in _seen:
        _seen.add(hit)
        os.write(hits, f"{int.from_bytes(hit[0], 'big')} {name}\n".encode())


trampoline.record_trampoline_hit = _record
