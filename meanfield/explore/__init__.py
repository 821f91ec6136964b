"""The explorer: a page in the browser on which parameters are moved and densities evolve.

The page shows a `Scene`: a few numbers, from which configurations, frames and diagrams are
computed. Only `server` and `connections` need the extra ``[explore]``.
"""
