"""The credits of a task: its ledger, and responses that are already billed."""
