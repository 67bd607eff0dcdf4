"""RabbitMQ: queues and users of a node, and rabbitmqctl."""
