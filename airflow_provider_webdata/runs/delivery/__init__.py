"""The way of results from an answer to XCom, a file, or partitions.

A `Delivery` is a list of steps in front of a sink. A step prepares before anything is billed, transforms items as a
stream, adds columns and facts, and may fail or skip the task after everything is written.
"""
