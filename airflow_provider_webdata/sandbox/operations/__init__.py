"""What the service can be asked to do: one file per operation, and what several of them share.

An operation checks the request, does the work with the engine, bills it, and says what to answer.
"""
