# SPDX-License-Identifier: Apache-2.0
"""The inbox's HTTP API: receives deliveries and serves them to readers. Each request is bounded and authenticated.

Plain ASGI on top of `storage`, without SQL. `application`, in the parent package, provides connections and options.
"""
