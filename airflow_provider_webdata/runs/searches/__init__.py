# SPDX-License-Identifier: Apache-2.0
"""Batch search: concurrent searches. Each fails independently."""
