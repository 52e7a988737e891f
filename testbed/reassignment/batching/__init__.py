"""KIP-435 as a client: it divides a plan into steps and batches over KIP-455's API."""
