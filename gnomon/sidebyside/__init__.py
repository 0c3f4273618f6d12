"""
Two endpoints side by side, with no proxy between: `gnomon compare`.

    sampling    which questions a chain asks of itself: blocks, receipts, logs, state, calls, traces (pure)
    requests    questions from a file (pure)
    heads       the common final height of two endpoints
    client      a polite JSON-RPC client: rate, concurrency, retries, time limits
    run         asks both, judges each pair
    report      what was found, for a machine and for a person (pure)

Verdicts come from `gnomon.compare.judge`, the same that the product stores.
"""
