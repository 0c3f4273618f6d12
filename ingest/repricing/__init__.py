"""
History priced again: the stored calls by the price books of now.

    calls.py      calls of equal price in one group: what they cost now, what they were charged (pure); the SQL
    changing.py   the statement that gives calls their new price, and keeps the old one (pure)
    aligning.py   what a rollup lacks or has too much, so that its sums are those of the calls again (pure)
    run.py        some days at a time: read, change, align; it can be killed anywhere and run again

A call's price is a function of its row, so nothing here reads events. Every step is "make it what it should be", never
"add something": what was done is seen from the tables, and doing it again does nothing.
"""
