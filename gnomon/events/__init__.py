"""
What the proxy says of every request, and how it reaches its consumers.

    contract    the event types, version 1
    codec       events to bytes and back
    topics      topic and key of each type
    log         the segment log on disk between proxy and consumers
    errors      what can go wrong with an event or a log
"""
