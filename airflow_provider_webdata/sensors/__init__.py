"""What a task waits for: a check of a monitor, or any delivery to the inbox.

One module per kind of thing that is waited for. Whether a check is the right one is decided in `hooks.checks`, the
waiting itself happens in `triggers`; here is what a task does before and after it, or instead of it, without a
triggerer. Nothing heavy is imported at module level: a DAG file pays for every import.
"""
