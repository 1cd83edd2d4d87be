"""Sampling, selection and training on many workers, or on one machine and its disk.

The tasks are plain functions of a block or part number; an `engine` runs them: this process, or Ray. Blocks and parts
depend on the data and the seed alone, so the output is the same whatever runs them, and a lost worker costs one task.
"""
