"""Airflow assets for objects of the service, for use in DAG files."""
