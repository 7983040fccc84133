"""Results in XCom, in files of several formats in any object storage, and media kept before its links expire.

It takes results as the service sent them, mappings with wire names, and imports no other room.
"""
