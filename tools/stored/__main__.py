"""Writer of `tests/stored/`.

python -m tools.stored    add unlisted data to the files of this version

Listed data never changes, because installations keep it. Before the release of a version, delete its files first.
"""

from __future__ import annotations

import json
import sys

from airflow_provider_webdata import __version__
from tools.stored.forms import FOLDER, differences, forms
from tools.stored.inbox import database


def main() -> int:
    """Write the files, or report stored data that would change."""
    FOLDER.mkdir(exist_ok=True)
    file, statements = FOLDER / f"{__version__}.json", FOLDER / f"{__version__}.sql"
    now = forms()
    lost, _ = differences(json.loads(file.read_text()), now) if file.exists() else ([], [])
    if lost:
        print(
            f"{file.name} contains data that this code stores differently or no longer stores:",
            *sorted(lost),
            sep="\n  ",
        )
        print("Installations have this data. Keep it, or also load it under its old name.")
        return 1
    file.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
    if not statements.exists():
        statements.write_text(database())
    return 0


if __name__ == "__main__":
    sys.exit(main())
