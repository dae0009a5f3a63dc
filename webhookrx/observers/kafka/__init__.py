"""Messages to a topic of Kafka, by confluent-kafka."""
