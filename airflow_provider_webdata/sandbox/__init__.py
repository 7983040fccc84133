"""An emulator of the service, with its own small web, for demos, tests, and DAG development.

It imports nothing from the rest of the package. It checks requests against its own statement of the service's rules,
so a wrong model elsewhere cannot agree with itself here. It is a development tool and refuses what it cannot emulate
faithfully.
"""
