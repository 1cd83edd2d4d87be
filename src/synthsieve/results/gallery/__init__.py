"""A finished run's pool in the browser, on this machine alone: `synthsieve serve OUT`."""
