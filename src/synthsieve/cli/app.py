"""The command `synthsieve`: one file per verb. Errors that a user can fix are printed as one sentence, exit code 2."""

from __future__ import annotations

import sys

import typer

from synthsieve import __version__
from synthsieve.cli.benchmark import benchmark
from synthsieve.cli.doctor import doctor
from synthsieve.cli.evaluate import evaluate
from synthsieve.cli.export import export
from synthsieve.cli.fit import fit
from synthsieve.cli.label import label
from synthsieve.cli.options import Command, echo
from synthsieve.cli.predict import predict
from synthsieve.cli.presets import presets
from synthsieve.cli.report import report
from synthsieve.cli.reproduce import reproduce
from synthsieve.cli.run import run
from synthsieve.cli.sample import sample
from synthsieve.cli.select import select
from synthsieve.cli.serve import serve
from synthsieve.cli.utility import utility
from synthsieve.errors import in_one_sentence

app = typer.Typer(
    name="synthsieve",
    help="Train from few labels, generate labelled data, and measure whether it helps.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
INTERRUPTED = 130  # exit code after Ctrl-C


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"synthsieve {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    pass


# Each fits into a line of 80 columns of `synthsieve -h`.
for verb, summary in (
    (run, "Start here: train on your data, and measure what helps."),
    (fit, "Train one model on few labels and many unlabelled examples."),
    (predict, "Predict the class of new examples."),
    (label, "Label new rows, to train your own model on them."),
    (sample, "Draw new labelled examples from a model."),
    (export, "Save the synthetic data of a run as files, with a card."),
    (report, "Write the HTML report of a run again."),
    (evaluate, "Measure a model on held-out labels."),
    (benchmark, "Compare methods of the literature on your data."),
    (utility, "Measure how much synthetic rows help any model."),
    (select, "Select the most useful of generated rows."),
    (reproduce, "Train every variant of the paper's Table 1."),
    (serve, "Browse samples in your browser."),
    (presets, "List the presets, or print one."),
    (doctor, "Show versions, cores, memory, GPU and data sets."),
):
    app.command(short_help=summary, cls=Command)(verb)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; --debug shows the traceback of an error instead of one sentence."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(arguments, prog_name="synthsieve")
    except Exception as error:
        message = in_one_sentence(error)
        if message is None or "--debug" in arguments:
            raise
        echo(f"synthsieve: {' '.join(message.splitlines())}", err=True)
        raise SystemExit(2) from None
    except (KeyboardInterrupt, SystemExit) as end:  # typer turns the interrupt into an exit, and prints nothing
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        advice = "to continue, repeat the command (run, reproduce) or add --resume (fit)"
        echo(f"synthsieve: interrupted; {advice}", err=True)
        raise SystemExit(INTERRUPTED) from None
