# SPDX-License-Identifier: Apache-2.0
"""Long-running jobs: started once for all attempts of a task, found again, awaited, and their results read."""
