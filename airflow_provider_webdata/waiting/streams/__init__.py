"""Event triggers: streams that many asset watchers share, each with a cursor of its own that survives restarts."""
