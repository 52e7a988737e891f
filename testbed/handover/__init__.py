"""How a partition on shared storage goes from one broker to another: the steps, found in what the brokers say."""
