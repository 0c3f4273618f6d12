"""
The demonstration: a small world of nodes, traffic and planted faults around a running `gnomon up`.

    run         the whole run, from the data folder to the summary
    world       what a world of nodes offers; `real` (anvil and a second implementation), `simulated` (ours)
    nodes       finds, installs and starts real nodes
    chain       the simulated chain, a pure state machine; `planted` is its second, faulty implementation
    contract    the contract that both kinds of world run
    rpc_server  a small JSON-RPC server; `faults` is a shim that withholds blocks
    clients     web3.py, or a plain client; `traffic` the mix of calls
    settings    the configuration that the demonstration writes
    standing_in the nodes alone, at known ports, for a Gnomon of the user's own
    measures    what it asks of ClickHouse; `summary` the words
"""
