"""Waiting without a worker: triggers, and what all waits of one connection in one triggerer share.

A trigger decides what ends its wait and says so in its task's log. Whatever talks to a server is shared, so that
requests grow with connections and never with waits: `feed` reads the inbox, `poller` asks the service, `channel`
holds both for one connection, and `mailbox` is how they reach a waiting trigger. What a check means is decided in
`hooks.checks`.
"""
