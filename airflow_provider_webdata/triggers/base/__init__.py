"""What the triggers share: deadline, announcement, and event of a wait; cursor of a watcher; stored form."""
