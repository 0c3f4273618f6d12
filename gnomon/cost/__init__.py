"""
What a call costs: price books, and the charge of one attempt.

    errors.py     PriceBookError: everything wrong with a book, each with its place
    networks.py   chain ids under the names that vendors' price lists use
    book.py       a price book, parsed and checked; the shipped ones are in books/ with their sources
    charge.py     units and USD of one attempt, exact; the books of an installation by vendor and date
    waste.py      which paid calls were of no use

Money is never a float: amounts are integers of 10^-12 (`SCALE`), as the column `Decimal(38, 12)` holds them.
"""
