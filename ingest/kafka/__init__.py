"""
The worker of a cluster: partitions of Kafka topics → the sink, with the steps and the keeper of the embedded runner.

Pure or without Kafka:

    settings.py      group, waits and limits
    watchdog.py      when a worker that stands still must end, so that its supervisor starts another
    letters.py       a dead letter as a record, and how many are too many

Shell:

    topic_ids.py     topics by name → their ids, which are the sink's log ids
    lanes.py         threads that speak to ClickHouse, away from the event loop
    feed.py          one partition: take over, read, store in batches, write down how far
    consumption.py   the member of the consumer group: assignment, fetching, commits
    worker.py        the Faust app around it
    source.py        what the topics still have, for building the tables again

Why Faust's own consumer is not used: see `consumption.py`.
"""
