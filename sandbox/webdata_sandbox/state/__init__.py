# SPDX-License-Identifier: Apache-2.0
"""The state of a running sandbox: store, clock, settings, credits, quirks, and faults. Independent of operations."""
