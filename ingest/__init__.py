"""
Events become rows, each exactly once.

Pure (batch in, rows out; no clock, no socket, no file):

    tables.py       which tables the sink writes: columns, wire types, partitions
    blocks.py       rows of a table, kept by columns
    batch.py        records → decoded events, poison put aside
    rows.py         the step: one batch of records → rows of every table
    asked.py          its part for questions: method and block
    attempts.py       its part for calls: charge, waste
    comparisons.py    its part for mirrored calls: verdict, findings
    bodies.py         its part for bodies, a set
    rollups.py      rows → groups per hour and per minute
    native.py       rows → one block in ClickHouse's Native format
    verdicts.py     which verdicts are worth a log line, and how it reads
    pacing.py       when a batch is due

Shell:

    engine.py       the one module that speaks to ClickHouse (HTTP)
    sink.py         epoch, fence, floors, one block per insert, progress: the exactly-once rule
    missing.py      mirrored calls that never ended: their `missing` rows
    keeper.py       one log's way through the steps into the sink; both runners share it
    runner.py       the embedded runner: logs on disk → sink
    kafka/          the worker of a cluster: partitions of Kafka topics → sink
    rebuild.py, log_source.py
                    all tables built again from the events that are there
    metrics.py, health.py
                    what it counts, and where to read it
    settings.py     what it needs of the configuration
    errors.py       what can go wrong

Source of the rule: tests/ingest/test_kill.py kills and pauses its owners in a loop.
"""
