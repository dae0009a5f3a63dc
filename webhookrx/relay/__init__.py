"""The relay: takes messages from a broker, hands them to an observer, and settles those that it has stored."""
