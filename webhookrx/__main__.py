"""C{python -m webhookrx}: the same as the command C{webhookrx}."""

from webhookrx.commands.main import main

if __name__ == "__main__":
    raise SystemExit(main())
