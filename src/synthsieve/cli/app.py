"""The command `synthsieve`: one verb, one file beside this one. Errors of ours become one sentence and exit code 2."""

from __future__ import annotations

import sys

import typer

from synthsieve import __version__
from synthsieve.cli.doctor import doctor
from synthsieve.cli.evaluate import evaluate
from synthsieve.cli.export import export
from synthsieve.cli.fit import fit
from synthsieve.cli.predict import predict
from synthsieve.cli.printing import echo
from synthsieve.cli.report import report
from synthsieve.cli.reproduce import reproduce
from synthsieve.cli.run import run
from synthsieve.cli.sample import sample
from synthsieve.cli.select import select
from synthsieve.cli.serve import serve
from synthsieve.errors import in_one_sentence

app = typer.Typer(
    name="synthsieve",
    help="Train from few labels, generate labelled data, and measure whether it helps.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


INTERRUPTED = 130  # the exit code of a process that Ctrl-C ended


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"synthsieve {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    pass


for verb in (run, fit, predict, sample, export, report, evaluate, select, reproduce, serve, doctor):
    app.command()(verb)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; what a user can cure is printed as one sentence, exit code 2 (the trace with --debug)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(arguments)
    except Exception as error:
        said = in_one_sentence(error)
        if said is None or "--debug" in arguments:
            raise
        echo(f"synthsieve: {' '.join(said.splitlines())}", err=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while typer was not listening: before the verb began, or after it ended
        _say_interrupted()
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer has caught the interrupt and says nothing of it
            _say_interrupted()
        raise


def _say_interrupted() -> None:
    typer.echo(
        "synthsieve: interrupted; what was written is whole: run and reproduce go on with the same command, "
        "fit with --resume",
        err=True,
    )
