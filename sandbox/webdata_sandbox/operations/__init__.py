# SPDX-License-Identifier: Apache-2.0
"""The operations of the service, one module each, and their shared helpers.

An operation validates a request, runs the engine, bills the work, and returns the reply.
"""
