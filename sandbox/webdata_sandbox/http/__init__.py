# SPDX-License-Identifier: Apache-2.0
"""The HTTP layer: routing, the processing around each operation, uploads, and downloads."""
