# SPDX-License-Identifier: Apache-2.0
"""The credits of a task: its ledger, and responses that are already billed."""
