"""What is sampled once a second, on each host and on the machine. A probe never changes what it looks at."""
