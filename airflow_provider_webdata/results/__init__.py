"""Where results go: XCom, files in any object storage (JSON Lines, Parquet), media kept before its links expire.

The rest of the package is not needed here: what is written is what the service sent, as mappings with wire names.
"""
