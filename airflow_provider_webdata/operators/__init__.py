"""What a task does: arguments are rendered and checked, the hook is called, the answer becomes XCom.

One module per operation; `monitor` has all of those for monitors. What a failure means for the task (fail now,
retry, come back later) is decided in `service_task` and `retry`, what the end of a wait means in `waiting`; sensors
share both. Nothing heavy is imported at module level: a DAG file pays for every import.
"""
