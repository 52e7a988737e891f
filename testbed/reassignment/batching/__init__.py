"""KIP-435 from outside: a plan taken apart into steps and batches over KIP-455's API."""
