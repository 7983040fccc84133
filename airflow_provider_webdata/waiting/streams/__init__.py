# SPDX-License-Identifier: Apache-2.0
"""Event triggers: a stream for each asset watcher, with a cursor that survives restarts."""
