"""
The whole cluster under faults: proxy → log → shipper → Kafka → two workers → ClickHouse, each a process of its own.

    script      what each upstream answers to question n, and so which verdict its pair must get; pure
    upstreams   the scripted upstreams; count each call
    clients     ask each question once, at a rate; keep what they were told
    poison      records that are no events, straight into the topic
    late        the way from the workers to ClickHouse: some requests arrive late, or nothing does
    traffic     the event loop that all of these live on
    launched    a `gnomon` command with another clock, or that dies behind an insert
    cluster     the processes: start, kill, stop, pause
    faults      what is done to them
    counting    what was lost, doubled or judged wrongly
    run         one cluster's life under a plan of faults

`python -m bench cluster-chaos` is the long form, tests/bench/test_cluster_chaos.py the short one.
"""
