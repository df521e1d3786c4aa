"""What can be seen from outside: metrics, and one log event per request."""
