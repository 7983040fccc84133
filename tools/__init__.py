# SPDX-License-Identifier: Apache-2.0
"""Development tools: generators, checks, and setup programs. They are not part of the package."""
