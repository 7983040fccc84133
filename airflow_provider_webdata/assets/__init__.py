"""Assets of Airflow that stand for objects of the service. DAG files import them."""
