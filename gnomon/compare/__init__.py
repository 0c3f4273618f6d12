"""
Are two answers to one question the same? Rules, and where each lives.

    exact    decoding without loss: numbers of any size and spelling, duplicate members, broken text
    masks    members that do not count: `*.logs.*.blockTimestamp`, compiled and validated
    walk     the differences of two values, by path; lists by position, order, length or key
    classes  what kind of difference it is, and which of several tells most
    paths    `$.result[0].logs[2].data`, and the same without indexes
    findings differences grouped, with an example cut so that the difference shows
    judge    question and two answers in, verdict out
    batch    the same for batches, paired by id
    presets  masks of chain families, with versions and sources

Everything is a pure function. Verdicts come from our own walk; nothing here reads a clock, a file or a logger. Any
bytes get a verdict: what cannot be read, or passes a limit, is `undecided`.
"""
