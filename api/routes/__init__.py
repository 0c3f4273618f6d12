"""
The routes, one module a subject; each has a `router`, and every path in it is whole (`/v1/…`).

A new subject is a module here and a line in `api.app.ROUTERS`.
"""
