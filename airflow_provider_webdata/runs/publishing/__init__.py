"""The delivery path of results, from a response to XCom, a file, or partitions.

A `Delivery` is a list of steps in front of a sink. A step prepares before any call is billed, transforms a stream of
items, adds columns and facts, and may fail or skip the task after all items are written.
"""
