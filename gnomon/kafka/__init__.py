"""
What all that speak to Kafka share. Needed only where `gnomon.events.kafka` is configured.

    partitions  which partition a key is in (pure)
    topics      the topics there must be, and what is wrong with those there are (pure)
    client      the client's arguments from the settings: addresses, TLS, SASL
    admin       look at the topics of a cluster, make those that are missing
    hearsay     what the client says in its log alone
    migrate     the part of `gnomon migrate` for Kafka
    errors      what can go wrong
"""
