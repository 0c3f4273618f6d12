"""
A Kafka broker for tests and for `make kafka`; the product never starts one.

    jars        Apache Kafka's jars in the user's cache, by Maven
    local       one broker as a JVM on this machine: start, stop, kill, pause
    choice      which broker a run of the tests uses

`python -m tests.broker` runs one in the foreground; `python -m tests.broker.jars` fills the cache.
"""
