"""The command, as ``python -m keepers``."""

from keepers.app import main

if __name__ == "__main__":
    main()
