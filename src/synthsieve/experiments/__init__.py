"""Experiments: arms that branch off one first phase, their jobs, and the tables made of them."""
