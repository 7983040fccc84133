"""The sandbox's own statement of the service: what requests may hold, how schedules, times and errors are written.

It imports nothing else of the sandbox, and nothing of the rest of the package.
"""
