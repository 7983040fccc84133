# SPDX-License-Identifier: Apache-2.0
"""The pages, one module each: requests, permissions, and template values."""
