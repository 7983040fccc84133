"""Followers combine deliveries and polls for one wait: a delivery is a hint, and the service's state decides."""
