"""`python -m mlpipe` is the same as `mlpipe`."""

from mlpipe.cli import main

if __name__ == "__main__":
    main()
