"""The compiled path; all else is in setup.cfg. Without a compiler it is left out, see webhookrx/speedups.py."""

from setuptools import Extension, setup

SOURCES = [f"speedups/{name}.c" for name in ("module", "head", "line", "text", "json")]
setup(ext_modules=[Extension("webhookrx._speedups", SOURCES, depends=["speedups/speedups.h"], optional=True)])
