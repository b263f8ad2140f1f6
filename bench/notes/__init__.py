"""Precision and recall of the judge of reports, on labelled reports of agents."""
