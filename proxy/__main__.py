"""`python -m proxy` is the command `sluicegate`."""

from proxy.cli.main import main

if __name__ == "__main__":
    main()
