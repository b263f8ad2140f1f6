"""The web console: pages for people, served by the REST server at `/console/`.

It needs the extra `server`.
"""
