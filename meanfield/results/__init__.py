"""Results: solutions, their labelled datasets, and the files that hold them."""
