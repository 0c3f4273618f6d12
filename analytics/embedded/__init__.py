"""
The embedded ClickHouse: chDB in a process of its own, behind ClickHouse's own HTTP protocol on loopback.

    server.py        aiohttp application: protocol, life cycle          (shell)
    front.py         what happens to one request: roles, gate, fence    (shell)
    engine.py        the only module that imports chDB: handles, pools  (shell)
    compression.py   bodies in, bodies out
    access.py        who may ask: Host, Origin, credentials             (pure)
    parameters.py    what a URL says: statement, settings, parameters   (pure)
    statement.py     splits INSERT and data, finds FORMAT and fence     (pure)
    fence.py         one owner per key, by epoch                        (pure)
    configuration.py the engine's own configuration files
    credentials.py   the writer's user and password
    lock.py          one process per data folder
    errors.py        ClickHouse's codes, names and HTTP statuses

Why a child process and not in-process chDB: one code path with a ClickHouse server, any ClickHouse tool works, and an
engine that crashes or is killed for memory takes nothing with it.
"""
