"""A finished run told on one page: `report.html`, which needs no network, no server and no script to be read."""
