"""The meaning of the service's answers about a check or a job for a wait.

Pure decisions, the same for trigger, sensor and operator, and how their criteria are stored: nothing here talks to the
service or knows Airflow.
"""
