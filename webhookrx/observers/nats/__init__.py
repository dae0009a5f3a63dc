"""Messages to a stream of NATS JetStream, by nats-py."""
