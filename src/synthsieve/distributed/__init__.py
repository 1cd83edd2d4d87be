"""Drawing and selecting where one process is too small: many workers, or one machine and its disk.

What is done is written here as plain functions of a block or a part number (`scoring`, `threshold`, `sorting`,
`rounds`, `writing`); who does it is an `engine`: this process, or Ray. Blocks and parts follow from the data and the
seed alone, so the same bytes come out whoever works, and a lost worker costs its block.
"""
