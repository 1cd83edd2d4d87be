"""`report.html`: a finished run on one self-contained page."""
