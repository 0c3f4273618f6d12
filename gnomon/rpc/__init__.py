"""
JSON-RPC and EVM knowledge, in one place: routing, comparison, finality and cost all read these tables.

    methods    the method table: writes, node-local questions, block positions, emptiness, static finality
    emptiness  is a raw result empty, and does that mean "not found"?
    errors     one table of error classes: code and structure first, text last
    blocks     which block a request or an answer speaks of
    finality   finalized, unfinalized, realtime or unknown

Everything is a pure function over bytes and numbers. What is not known is safe: a method nobody listed is neither a
miss when empty nor final, and a name that sounds like a write is one.
"""
