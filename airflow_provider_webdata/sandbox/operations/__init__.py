"""The operations of the service: one file each, and the parts that several of them share.

An operation checks the request, does the work with the engine, bills it, and says what to answer.
"""
