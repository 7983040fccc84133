"""What one wait makes of deliveries and polls: a delivery is a hint, and what the service shows decides."""
