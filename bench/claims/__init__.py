"""Claims from plain text: precision and recall on labelled sentences, and the newest fact first
in FactConsolidation."""
