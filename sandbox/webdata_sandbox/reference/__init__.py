# SPDX-License-Identifier: Apache-2.0
"""The sandbox's independent description of the service: request bodies, schedules, times, prices, and errors.

It imports no other part of the sandbox or of the package.
"""
