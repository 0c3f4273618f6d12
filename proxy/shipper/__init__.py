"""
From the event log to Kafka: a process of its own beside the worker, which never waits for it.

Pure:

    routing     record → topic and key, from its first bytes
    chunk       records in order → what each partition gets, in order; what the cluster refuses
    standin     what travels for a record that cannot

Shell:

    cluster     the one module that speaks to Kafka
    lane        one log: read, send, keep the position
    service     the process: all logs below a folder, signals
    metrics     what it counts; the worker's /metrics shows it
    keeper      the worker's side: starts the process, starts it again, stops it

**Order.** A partition has at most one batch under way, and the next one goes when it was acknowledged. After any death
the first occurrences of a process's events in a partition are in order, and what is repeated after a death lies below
what was there: a consumer knows a repeated event by its number (`proc:seq`) alone. With several batches under way a
refused one could be overtaken, and its events would look repeated.

**At least once.** The position moves when all of a chunk is acknowledged, so a death repeats one chunk at most. Kafka's
idempotence makes sure that nothing is doubled while the process lives, however often a connection breaks.
"""
