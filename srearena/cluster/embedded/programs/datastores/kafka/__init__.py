"""Kafka: a broker's logs and consumer groups, and the command-line tools around them."""
