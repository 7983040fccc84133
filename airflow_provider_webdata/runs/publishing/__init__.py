# SPDX-License-Identifier: Apache-2.0
"""The way of results from a response to XCom, a file, or partitions.

A `Publication` is a list of steps in front of a sink. A step prepares before any call is billed, transforms a stream of
items, adds columns and a summary, and may fail or skip the task after all items are written.
"""
