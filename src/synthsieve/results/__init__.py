"""Finished runs: their tables, their pools under other selections, reports, exports, charts and the gallery."""
