"""The REST server: `memory-mesh serve`. It needs the extra `server`.

`app.build` makes the application from the table of operations; `serve.serve` runs it.
"""
