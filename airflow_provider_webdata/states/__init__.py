"""What the service's answers about a check or a job mean for whoever waits.

Pure decisions, the same for trigger, sensor and operator: nothing here talks to the service or knows Airflow.
"""
