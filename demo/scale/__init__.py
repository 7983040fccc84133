# SPDX-License-Identifier: Apache-2.0
"""`make scale`: many waiting jobs on two of each Airflow component, some of which are killed during the run."""
