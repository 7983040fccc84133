"""Deliveries for waits: one reader for each connection, who waits for what, and what arrived before a wait began."""
