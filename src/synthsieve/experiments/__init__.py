"""Experiments: arms that branch off one pretraining, their jobs, and the tables made of them."""
