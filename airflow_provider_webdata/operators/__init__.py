"""What a task does: arguments are rendered and checked, the hook is called, the answer becomes XCom.

One module per resource of the service. What a failure means for the task (fail now, retry, come back later)
is decided in `base` and `retry`. Nothing heavy is imported at module level: a DAG file pays for every import.
"""
