"""What a task is billed: its ledger, and responses that are already billed."""
