"""
The configuration file: eRPC's shape for what we share, our own settings under `gnomon`.

    load      file → effective settings, or every problem at once
    source    YAML text → tree with lines; variables, repeated keys, YAML 1.1 traps
    keys      every key, once: reader, documentation and tests read this list (keys_erpc, keys_own, declare, classes)
    pending   keys that are read and not in force yet
    schema    the shapes of values, and the walk that reads by them into `values`, with `findings`
    networks, upstreams, vendors, endpoints, policies, access, services, masks
              what the values mean, room by room
    model     the effective settings
    dump      the effective settings for people, secrets masked
"""
