"""
Charts drawn on the server: rows in, SVG text out. No style attribute; colours and faces by class (static/app.css).

    svg        the element, and the few shapes it is made of
    sparks     small ones for table cells: a trend, bars, spans of a state, a share beside another
    strips     several quantities on one clock
    histogram  counts per hour or day, with marks
    month      spend by cause to the month's end; an account against its budget
    heads      lag of one upstream; delay after the first
    waterfall  calls of one request

Each takes the words that a screen reader says of it, with its answer. Unknown values (None) leave a gap or are hatched,
never drawn as zero.
"""
