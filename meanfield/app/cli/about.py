"""`meanfield doctor` and `meanfield schema`: what there is."""

import sys

import click

from .group import NOT_SUCCESSFUL, main, refuses_cleanly

__all__ = ["doctor", "schema"]

KINDS = ["run", "chaos", "bifurcation", "phase_diagram"]


@main.command()
@refuses_cleanly
def doctor() -> None:
    """Print versions, threads and licences, for a bug report.

    Exit code: 0, or 1 if something that is required is missing.
    """
    from ..environment import describe
    from ..environment import doctor as examine

    report = examine()
    click.echo(describe(report))
    if report["problems"]:
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@click.argument("kind", default="run", type=click.Choice(KINDS))
@refuses_cleanly
def schema(kind: str) -> None:
    """Print the JSON schema of configuration files, of a run (default) or of another kind."""
    import json

    from ..config import schema as configuration_schema

    click.echo(json.dumps(configuration_schema(kind), indent=2))
