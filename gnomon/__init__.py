"""
What every service shares, pure where it can be.

    rpc      JSON-RPC and EVM knowledge: method table, emptiness, error classes, block references, finality
    compare  masks, walk, classes, verdicts
    cost     price books and charges
    events   the event contract, its codec, the log on disk
    config   the configuration file and the effective settings
    cli      one module per sub-command
"""
