"""The data model: columns, rows, conditions, records, scope, ids and times."""
