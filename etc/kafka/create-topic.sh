#!/bin/sh
# Makes the topic of etc/kafka/webhookrx.yaml with Kafka's own tools, on three brokers or more.
#
# A message is acknowledged once two of three replicas have it, and survives the loss of either machine. Partitions: at
# least twice as many as there will ever be relays, since adding some later moves the keys.
set -eu
exec "${KAFKA_BIN:-/opt/kafka/bin}/kafka-topics.sh" --bootstrap-server "${1:?kafka-1:9093}" ${2:+--command-config "$2"} \
    --create --topic logs --partitions 24 --replication-factor 3 \
    --config min.insync.replicas=2 \
    --config unclean.leader.election.enable=false \
    --config retention.ms=604800000 \
    --config max.message.bytes=12582912
