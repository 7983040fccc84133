"""The state of `changes`: snapshots of the pages that earlier runs read."""
