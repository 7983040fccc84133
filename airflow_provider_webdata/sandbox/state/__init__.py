"""What a sandbox holds while it runs: its store, clock, settings, credits, quirks and faults. Knows no operation."""
