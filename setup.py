"""The compiled path; all else is in setup.cfg. Without a compiler it is left out, see webhookrx/speedups.py."""

from setuptools import Extension, setup

SOURCES = ["speedups/module.c", "speedups/head.c", "speedups/line.c", "speedups/text.c"]
setup(ext_modules=[Extension("webhookrx._speedups", SOURCES, depends=["speedups/speedups.h"], optional=True)])
