# SPDX-License-Identifier: Apache-2.0
"""Base classes of the triggers: deadlines, first log lines, events, watcher cursors, and serialization."""
