"""One wait: a target is followed through the sources of its connection until it decides.

The concepts:

- `wait` follows a target to its end or a deadline; `look` looks once. Triggers await it, workers run it in a thread.
- `Hub`: what the waits of one connection share in one event loop. Requests grow with connections, never with waits.
- `Target`: what one wait is for: a job, a check, or a delivery. It decides, from `states`, what its sources found.
- `PollSource` polls the service; `Subject` is one job or monitor, polled once for all its targets.
- `InboxSource` reads deliveries with one long poll. A delivery is a hint: the poll source looks, the service decides.
- `Backoff`: pauses while a server does not answer, and the notices about it.
- `PollingPolicy`: by webhook or by polling, and how often; Airflow stores it.
- `Stream`: what asset watchers share, each with a cursor that survives restarts.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
