"""A finished run, opened for looking: its pools, what the model says of each sample, other sievings, marks."""
