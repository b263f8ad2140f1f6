"""The LanceDB store: a folder of Lance tables with the schemas of RFC-0011."""
