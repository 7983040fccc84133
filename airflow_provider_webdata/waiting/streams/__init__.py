"""Event triggers: streams that many asset watchers share, each with its own cursor that survives restarts."""
