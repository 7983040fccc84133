# SPDX-License-Identifier: Apache-2.0
"""The state of `changes`: snapshots of the pages that earlier runs read."""
