"""
Which files get mutants, and which tests have to notice them.
"""

from __future__ import annotations

from pathlib import Path

#: File or directory to the tests of its room.
SCOPE = {
    "webhookrx/http": ["tests.http"],
    "webhookrx/intake/head.py": ["tests.intake.test_judge", "tests.http.test_head"],
    "webhookrx/intake/client_certificates.py": ["tests.intake.test_client_certificates"],
    "webhookrx/intake/client_patterns.py": ["tests.intake.test_client_patterns"],
    "webhookrx/intake/named_lines.py": ["tests.intake.test_named_lines"],
    "webhookrx/intake/networks.py": ["tests.intake.test_networks"],
    "webhookrx/intake/token_masks.py": ["tests.intake.test_token_masks"],
    "webhookrx/intake/token_places.py": ["tests.intake.test_token_places"],
    "webhookrx/intake/tokens.py": ["tests.intake.test_tokens"],
    "webhookrx/intake/header_masking.py": ["tests.intake.test_header_masking", "tests.intake.test_judge"],
    "webhookrx/intake/judge.py": ["tests.intake.test_judge", "tests.router.test_connector_intake"],
    "webhookrx/backoff.py": ["tests.test_backoff", "tests.spool"],
    "webhookrx/filesystem.py": ["tests.test_filesystem", "tests.spool"],
    "webhookrx/guard/quota.py": ["tests.guard.test_quota", "tests.http.test_quotas"],
    "webhookrx/idempotency": ["tests.idempotency"],
    "webhookrx/pipeline": ["tests.pipeline"],
    "webhookrx/spool": ["tests.spool", "tests.commands.test_spool"],
    "webhookrx/router/expressions/run.py": ["tests.router.expressions"],
    "webhookrx/router/steps/context.py": ["tests.router"],
}


def files(root: Path) -> list[str]:
    """Return the paths of all files that get mutants."""
    found: list[Path] = []
    for name in SCOPE:
        found += [root / name] if name.endswith(".py") else (root / name).rglob("*.py")
    return sorted(str(file.relative_to(root)) for file in found)


def tests_of(root: Path, path: str) -> list[str]:
    """Return the tests for a file: those that mirror it, if there are any, then those of its room."""
    room = next(tests for name, tests in SCOPE.items() if path == name or path.startswith(f"{name}/"))
    _, *directories, name = Path(path).parts
    mirror = Path("tests", *directories, f"test_{name}")
    # Each name is a run of its own: together they would be one, with some tests twice in it.
    first = [".".join(mirror.with_suffix("").parts)] if (root / mirror).exists() else []
    return list(dict.fromkeys([*first, *room]))
