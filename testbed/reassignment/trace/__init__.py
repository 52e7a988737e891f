"""What a partition went through: its replicas, ISR, leader and epochs over time, from the controller's own log."""
