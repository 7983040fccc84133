"""Results in XCom, in files in any object storage (JSON Lines, Parquet), and media kept before its links expire.

It takes results as the service sent them, mappings with wire names, and imports no other room.
"""
