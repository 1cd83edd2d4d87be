"""A chart once as data, drawn as inline SVG, by matplotlib or by plotly."""
