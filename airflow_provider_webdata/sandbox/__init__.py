"""An emulator of the service with a small web of its own, for demos, tests and the development of DAGs.

It imports nothing of the rest of the package: requests are judged by its own statement of the service's rules, so
that a wrong model elsewhere cannot agree with itself here. It is a development tool, honest before clever:
what it cannot really do, it refuses.
"""
