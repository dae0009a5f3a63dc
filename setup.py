"""The compiled path; all else is in setup.cfg. Without a compiler it is left out, see webhookrx/speedups.py."""

from glob import glob
from os import remove

from setuptools import Extension, setup

# What an earlier build has left would be installed if this one fails, since the module is optional.
for left in glob("build/lib*/webhookrx/_speedups*"):
    remove(left)

SOURCES = [f"speedups/{name}.c" for name in ("module", "head", "line", "text", "json")]
setup(ext_modules=[Extension("webhookrx._speedups", SOURCES, depends=["speedups/speedups.h"], optional=True)])
