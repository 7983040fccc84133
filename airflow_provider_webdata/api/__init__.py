# SPDX-License-Identifier: Apache-2.0
"""Client of the service: wire models, declared endpoints, HTTP clients, and errors.

This package does not depend on Airflow, and can be used and tested alone. `hooks` creates a client from an Airflow
connection.
"""
