"""A chart as data, drawn as SVG or by matplotlib."""
