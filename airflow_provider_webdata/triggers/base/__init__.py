"""Bases of the triggers: deadline, announcement, and event of a wait; cursor of a watcher; stored form."""
