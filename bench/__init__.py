"""
What the product costs, measured. `make bench`, or `python -m bench NAME [ARGUMENTS]`.

Each module beside this one is a benchmark that runs by itself and prints its figures with the baseline of the same run.
"""
