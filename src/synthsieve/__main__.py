"""`python -m synthsieve` is the command `synthsieve`."""

from synthsieve.cli.app import main

if __name__ == "__main__":
    main()
