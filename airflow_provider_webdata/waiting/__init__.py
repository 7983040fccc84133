# SPDX-License-Identifier: Apache-2.0
"""Waits: a target follows the sources of its connection until it decides that the wait has ended.

Concepts:

- `wait` follows a target until its end or a deadline. Triggers await it; workers run it in a thread, and only poll.
- `Hub`: shared state of the waits of one connection in one event loop. The number of requests depends on the number of
  connections, not of waits.
- `Target`: the job, check, or delivery of one wait. It evaluates the results and errors of its sources with `states`.
- `PollSource` polls the service, and each job or monitor once for all its targets.
- `InboxSource` reads deliveries with one long poll. A delivery is a hint, which the poll source confirms.
- `Backoff`: pauses and notices while a server is unavailable.
- `policy`: how often to poll, with and without an expected delivery.
- `Stream`: the items of one asset watcher, after a cursor that survives restarts.

Below these: the single poll of a poke, the shared hook of a connection, the polled jobs and monitors, mailboxes and
their messages, and subscriptions to deliveries.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
