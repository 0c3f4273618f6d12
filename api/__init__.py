"""
Answers over HTTP: what is stored, as JSON under `/v1`, for programs and for the dashboard.

Pure:

    problems.py    every refusal (RFC 9457), and what an error of another room becomes
    access.py      tokens → callers, roles
    limiter.py     how often one caller may ask
    origins.py     Host, Origin and CORS
    rules.py        which masks and tolerances hold for a pair
    bodies.py       bodies of requests that keep the text of their numbers
    binding.py      parameters of a statement, JSON → ClickHouse's text
    resulting.py    a result in ClickHouse's rows → the API's document, piece by piece
    changes.py     what is new, by kind, numbered and kept for who was away
    cursors.py     where the next page begins
    values.py      ClickHouse's types and values → JSON
    errors.py      Refused

Shell:

    door.py        one ASGI layer around everything: who asks, how often, ids, errors, counts
    statements.py   SQL of people: limits, what is refused, results as they come
    connected.py    work that ends with its client
    live.py         the live stream: one poller, and who listens
    slots.py        how much may go on at once
    reader.py      connections to ClickHouse, a thread for each
    asking.py      a named question with the parameters of a request → rows, pages
    exposed.py     a route for a named question, its parameters and schema made from the question's header
    state.py       what is in force; replaced as a whole when the configuration is read again
    proxies.py     the proxies: how their upstreams stand, and whom they are not to call
    metrics.py     the closed list of metrics
    schema.py      the OpenAPI document
    reference.py   the same as a page, /docs
    app.py         the application: a list of the routers in routes/, one module a subject
    serving.py     the listener and its life

Numbers come from `analytics/queries/*.sql`, and from statements of people, and nowhere else: there is no SQL in this
room, and whoever shows a number (a route, a page) gets it from `asking.Asking`, so that they cannot disagree.
"""
