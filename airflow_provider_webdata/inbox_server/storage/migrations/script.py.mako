# SPDX-License-Identifier: Apache-2.0
"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}

# In SQLite `op.batch_alter_table` makes the table anew: for webdata_inbox_delivery it needs
# `table_kwargs={"sqlite_autoincrement": True}`, or ids of deleted deliveries come back.


def upgrade() -> None:
    """Upgrade to this revision."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Downgrade to the previous revision."""
    ${downgrades if downgrades else "pass"}
