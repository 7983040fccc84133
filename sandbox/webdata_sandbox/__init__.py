# SPDX-License-Identifier: Apache-2.0
"""An emulator of the service with its own small web, for demos, tests, and DAG development.

It does not import the provider: it validates requests with a separate implementation of the service's rules, so it
detects errors in the provider's models. It rejects requests that it cannot emulate faithfully.
"""
