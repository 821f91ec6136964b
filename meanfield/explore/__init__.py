"""The explorer: a page in the browser on which parameters are moved and densities evolve.

What the page shows is a `Scene`: a few numbers, from which configurations, frames and diagrams
follow. All of that is plain Python; `server` alone needs the extra ``[explore]``.
"""
