"""
What is stored and what can be asked: ClickHouse's schema, its embedded engine, named questions.

    migrations/, migrate.py   the schema as numbered files, and what runs them
    queries/, questions.py    named questions in SQL
    alerts/, alerting/        default alert rules as data, and the service that asks them and tells receivers
    accounts.py               months and budgets of vendor accounts, as SQL binds them
    store.py                  the connection to ClickHouse that product code uses
    gate.py, gate_functions.py  which SQL a reader may run
    embedded/                 chDB behind ClickHouse's own HTTP protocol
"""
