"""
The proxy: answers clients, mirrors to shadows, writes every event to its log before the client's last byte.

    core/        decisions without I/O: flight (which upstream next), answers (what came back), requests (what was
                 asked), heads (how far everyone is), shadowing (who gets a copy)
    wheel        coarse timers, cheap enough to arm two for each request
    connections  kept HTTP/1.1 connections to one upstream, bounded
    clients      the client side of HTTP/1.1
    heads_shell  polls heads and chain ids
    dispatch     carries a request through: flight → attempts → answer → event → shadows
    cordoning    upstreams kept out by hand: over HTTP, by who has the control secret
    emitter      events into the log
    service      puts the parts together, serves, drains
    shipper/     a process of its own beside the worker: from the log to Kafka

The shell is thin: callbacks carry bytes to the core's decisions and run what these ask for. No coroutine runs for a
client's request; only connecting and polling use tasks.
"""
