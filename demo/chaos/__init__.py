# SPDX-License-Identifier: Apache-2.0
"""`make chaos`: faults of Airflow components and the database at random, while deliveries and tasks continue."""
