"""Typed settings from TOML files and `--set a.b=c`; unknown keys are refused with the nearest valid name.

A run is described by one `Settings`. Presets are TOML files in `presets/`; a user's file and `--set` go on top.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthsieve.errors import ConfigError

LARGEST_POOL = 100_000_000
MOST_SHOWN = 200  # characters of a wrong value in an error


class NetworkKind(StrEnum):
    """Which encoder and generator are built; `auto` takes `strided` for images and `mlp` for vectors."""

    AUTO = "auto"
    MLP = "mlp"
    STRIDED = "strided"
    RESIDUAL = "residual"
    WIDE_RESNET = "wide-resnet"
    DCGAN = "dcgan"


class Norm(StrEnum):
    """The normalisation inside a convolutional network."""

    GROUP = "group"
    BATCH = "batch"


class Activation(StrEnum):
    """The nonlinearity of the energy."""

    GELU = "gelu"
    SILU = "silu"
    LEAKY_RELU = "leaky-relu"


class View(StrEnum):
    """How the label tower looks at an image: as it is, with its contrast evened out, or grey and evened out."""

    PLAIN = "plain"
    CONTRAST = "contrast"
    GREY_CONTRAST = "grey-contrast"


class Classify(StrEnum):
    """Which z of q(z given x) is classified: its mean, or draws (one in training, the average of several later)."""

    MEAN = "mean"
    DRAW = "draw"


class ChainStart(StrEnum):
    """Where the training chains start: at q(z given x) (Algorithm 1), or at the reference p0."""

    POSTERIOR = "posterior"
    REFERENCE = "reference"


class Schedule(StrEnum):
    """How learning rates move over a run: constant, or down a cosine to a twentieth; both after a linear warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"


class Latents(StrEnum):
    """Which latents a move in latent space may change: those of the style tower (all, where there is one), or all."""

    STYLE = "style"
    ALL = "all"


class Objective(StrEnum):
    """`joint` is Algorithm 1; `supervised` is its twin: the same encoder and energy, the labelled pairs alone."""

    JOINT = "joint"
    SUPERVISED = "supervised"


class EntropyAt(StrEnum):
    """Where a sample's entropy is measured: at x, decoded and encoded again (section 2.5), or at the drawn z (2.3)."""

    X = "x"
    Z = "z"


class Ceiling(StrEnum):
    """How the entropy ceiling is found: `auto` searches on validation."""

    AUTO = "auto"


class Coreset(StrEnum):
    """What is kept of those that pass the filter: all, a random part, or a weighted part by CRAIG or AdaCore."""

    EVERYTHING = "everything"
    RANDOM = "random"
    CRAIG = "craig"
    ADACORE = "adacore"


class GradientSource(StrEnum):
    """The gradient a coreset is chosen by: p - y at the re-encoded z, at the drawn z, or p - y times what F's last
    layer saw of the re-encoded z."""

    REENCODED = "reencoded"
    DRAWN = "drawn"
    LAST_LAYER = "last-layer"


class GradientThrough(StrEnum):
    """How many of a chain's steps the implicit form's gradient passes through."""

    ALL = "all"
    LAST = "last"
    NOTHING = "nothing"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Validation(StrEnum):
    """Where the labelled rows that choose weights and variants come from.

    `labels`: from the labelled rows themselves, by cross-fitting where they are few. `extra`: labelled rows beside the
    `labels` that train, as benchmarks do whose labels are all known.
    """

    LABELS = "labels"
    EXTRA = "extra"


class Keep(StrEnum):
    """Which weights of a phase are kept: those that did best on validation, or the last ones."""

    BEST = "best"
    LAST = "last"


class Metric(StrEnum):
    """What variants are chosen and compared by; `auto` is accuracy, or balanced accuracy with unbalanced classes."""

    AUTO = "auto"
    ACCURACY = "accuracy"
    BALANCED_ACCURACY = "balanced-accuracy"
    F1 = "f1"
    AUROC = "auroc"
    AVERAGE_PRECISION = "average-precision"
    LOG_LOSS = "log-loss"


class VariantSet(StrEnum):
    """Which variants `run` compares: all of the paper's table, the ones that answer a question, or the fewest."""

    ALL = "all"
    STANDARD = "standard"
    QUICK = "quick"


class DataSettings(_Section):
    """Which labels are used, and what is held out."""

    labels: int | None = Field(None, ge=1, description="number of labels to use; none = all of them")
    balanced: bool = Field(
        False, description="take as many labels of each class; false: as they come, and draw classes likewise"
    )
    validation: Validation = Field(Validation.LABELS, description="labels: out of the labels; extra: beside them")
    validation_fraction: float | None = Field(
        None, ge=0, lt=1, description="share of labelled rows held out to choose on; none = 0.1, or cross-fitting"
    )
    test_fraction: float | None = Field(
        None, ge=0, lt=1, description="share of labelled rows held out to measure on; none = 0.2, or cross-fitting"
    )
    folds: int = Field(5, ge=3, le=100, description="parts of cross-fitting, used below 300 labels")
    fold: int | None = Field(None, ge=0, description="the part that is held out; set by `run`")


class ModelSettings(_Section):
    """Energy, encoder, generator."""

    latent_dim: int = Field(32, ge=1, le=65536)
    label_latent_dim: int = Field(
        0, ge=0, description="latents of the label tower; 0 = one tower for all (the paper's form)"
    )
    encoder: NetworkKind = NetworkKind.AUTO
    encoder_width: int = Field(32, ge=1, le=65536)
    encoder_depth: int = Field(
        16, ge=1, le=1000, description="hidden layers of an mlp; layers of a wide ResNet (6n + 4)"
    )
    label_encoder: NetworkKind = Field(NetworkKind.AUTO, description="the label tower's network; auto = as encoder")
    label_width: int = Field(32, ge=1, le=65536, description="width of the label tower")
    view: View = Field(View.PLAIN, description="how the label tower (or the one tower) sees an image")
    norm: Norm = Norm.GROUP
    dropout: float = Field(0.0, ge=0, lt=1)
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of words hidden from a text generator in training")
    generator: NetworkKind = NetworkKind.AUTO
    generator_width: int = Field(32, ge=1, le=65536)
    energy_width: int = Field(200, ge=1, le=65536)
    energy_layers: int = Field(3, ge=1, le=1000, description="fully connected layers of F")
    energy_activation: Activation = Activation.SILU
    style_in_energy: bool = Field(
        True, description="F sees the style latents too; false: the label tower's alone, where there are two towers"
    )
    observation_noise: float = Field(0.3, gt=0, description="sigma of p(x given z)")
    classify: Classify = Field(Classify.MEAN, description="z used for prediction")

    @model_validator(mode="after")
    def _towers_fit(self) -> ModelSettings:
        if self.label_latent_dim >= self.latent_dim:
            raise ValueError(f"label_latent_dim={self.label_latent_dim} must be below latent_dim={self.latent_dim}")
        return self


class SamplingSettings(_Section):
    """Langevin: z' = z + s grad log p(z) + sqrt(2 T s) noise."""

    num_steps: int = Field(60, ge=0)
    step_size: float = Field(0.08, gt=0, lt=2, description="the predecessors' 0.4 is sqrt(2 s): s = 0.08")
    temperature: float = Field(1.0, ge=0)
    training_steps: int = Field(20, ge=0, description="steps of the training chains")
    training_start: ChainStart = ChainStart.POSTERIOR


class LearningSettings(_Section):
    """Algorithm 1, steps 1 to 6."""

    objective: Objective = Objective.JOINT
    steps: int = Field(3000, ge=1)
    batch_labeled: int = Field(100, ge=1, le=1_000_000)
    batch_unlabeled: int = Field(100, ge=1, le=1_000_000)
    cross_entropy_weight: float = Field(1.0, ge=0)
    elbo_weight: float = Field(
        1.0, ge=0, description="factor on the pace of steps 4 and 5 (Adam cancels one on losses)"
    )
    labeled_in_elbo: bool = Field(True, description="labelled x also enter the ELBO (Appendix B)")
    train_on: Classify = Field(Classify.DRAW, description="which z of q(z given x) the cross-entropy sees")
    mutual_information_weight: float = Field(0.0, ge=0, description="H(mean p) - mean H(p) on unlabelled z")
    mutual_information_ramp: int = Field(500, ge=1, description="steps over which that term comes in")
    smoothness_weight: float = Field(
        0.0, ge=0, description="p(y given x) must not turn within smoothness_radius of an unlabelled x"
    )
    smoothness_radius: float = Field(1.0, gt=0)
    smoothness_ramp: int = Field(500, ge=1, description="steps over which that term comes in")
    latent_smoothness_weight: float = Field(
        0.0, ge=0, description="the same for moves of x along the generator: x + g(z + r) - g(z)"
    )
    latent_smoothness_radius: float = Field(1.0, ge=0, description="length of r, in latent units")
    latent_smoothness_latents: Latents = Field(Latents.STYLE, description="which latents r may change")
    latent_smoothness_ramp: int = Field(500, ge=1, description="steps over which that term comes in")
    label_tower_elbo_scale: float = Field(0.0, ge=0, le=1, description="share of the ELBO's gradient the tower feels")
    label_kl_weight: float = Field(0.0, ge=0, description="KL(q || p0) of the label tower, beside the cross-entropy")
    logit_penalty: float = Field(0.0, ge=0, description="L2 on class logits and on f: keeps energies near zero")
    prior_learning_rate: float = Field(1e-4, gt=0)
    elbo_learning_rate: float = Field(1e-3, gt=0)
    label_learning_rate: float = Field(1e-3, gt=0)
    elbo_momentum: float = Field(0.9, ge=0, lt=1, description="the first beta of step 5's Adam")
    schedule: Schedule = Schedule.COSINE
    warmup: int = Field(100, ge=0)
    weight_decay: float = Field(1e-4, ge=0)
    clip_gradient: float | None = Field(None, gt=0, description="largest gradient norm of each of the three updates")
    ema_decay: float = Field(0.999, ge=0, lt=1, description="of the weights used for prediction; 0 = the weights")
    evaluate_every: int = Field(250, ge=1)
    checkpoint_every: int = Field(250, ge=1)
    keep: Keep = Field(Keep.BEST, description="weights kept where there are validation rows: best, or last")
    keep_metric: Metric = Field(Metric.ACCURACY, description="what decides the best: accuracy or balanced-accuracy")


class AugmentationSettings(_Section):
    """Algorithm 1, steps 7 and 8: a pool is drawn, filtered and selected from, and learned from beside the labels."""

    steps: int = Field(0, ge=0, description="steps after learning.steps; 0 = no second phase")
    learning_rate: float = Field(0.5, gt=0, description="factor on the rates of those steps; then down a cosine")
    ema_decay: float = Field(0.99, ge=0, lt=1, description="of the averaged weights in those steps")
    augment_from_step: int | None = Field(None, ge=0, description="first step with additions; none = learning.steps")
    enabled: bool = Field(True, description="learn from a synthetic pool")
    synthetic_loss_weight: float = Field(0.3, ge=0, description="coefficient of the synthetic cross-entropy")
    batch_synthetic: int = Field(100, ge=1, le=1_000_000)
    pool_size: int = Field(10000, ge=1, le=LARGEST_POOL, description="samples drawn, before the filter")
    temperature: float = Field(1.0, ge=0, description="of the drawing chains")
    decode_noise: bool = Field(False, description="x = g(z) + sigma noise instead of g(z)")
    entropy_at: EntropyAt = EntropyAt.X
    entropy_ceiling: float | Ceiling | None = Field(None, description="in nats, or auto = searched on validation")
    trial_steps: int = Field(100, ge=1, description="steps of each trial of that search")
    keep_fraction: float | None = Field(
        0.3, gt=0, le=1, description="of each class, the lowest entropies; used where there is no ceiling"
    )
    require_asked_class: bool = Field(True, description="reject samples that the classifier gives another class")
    coreset: Coreset = Coreset.CRAIG
    coreset_fraction: float = Field(0.1, gt=0, le=1)
    gradients: GradientSource = GradientSource.REENCODED
    reselect_every: int = Field(10000, ge=1, description="steps from one choice to the next")
    fresh_pool: bool = Field(True, description="draw again at each choice; false: judge the first pool's z anew")

    @model_validator(mode="after")
    def _above_zero(self) -> AugmentationSettings:
        if isinstance(self.entropy_ceiling, float) and self.entropy_ceiling <= 0:
            raise ValueError(f"entropy_ceiling={self.entropy_ceiling} must be above 0 nats: try 1e-6")
        return self


class PseudoLabelSettings(_Section):
    """Unlabelled x whose prediction is sure join the labelled ones, under a ceiling of their own."""

    enabled: bool = True
    loss_weight: float = Field(0.3, ge=0, description="coefficient of their cross-entropy")
    batch: int = Field(100, ge=1, le=1_000_000)
    entropy_ceiling: float | None = Field(None, gt=0, description="in nats; none = keep_fraction decides")
    keep_fraction: float = Field(0.5, gt=0, le=1, description="of each predicted class, the lowest entropies")
    reselect_every: int = Field(100, ge=1, description="steps from one choice to the next")


class ImplicitSettings(_Section):
    """Section 2.5: y -> z -> x -> z -> F as one differentiable chain."""

    enabled: bool = False
    real_fraction: float = Field(0.8, ge=0, le=1, description="lambda: the real labels' share of the cross-entropy")
    batch: int = Field(100, ge=1, le=1_000_000)
    num_steps: int = Field(20, ge=0)
    temperature: float = Field(1.0, ge=0)
    gradient: GradientThrough = GradientThrough.NOTHING
    gradient_steps: int = Field(5, ge=0, description="how many steps `last` means")
    freeze_generator: bool = Field(True, description="the generator gets no gradient from this term")


class ProofSettings(_Section):
    """What `run` and `reproduce` compare."""

    pool_sizes: tuple[int, ...] = Field((10000,), min_length=1, description="L of the table, ascending")
    baselines: bool = Field(True, description="the twin on labels alone, and classical methods, beside every result")
    metric: Metric = Field(Metric.AUTO, description="what variants are chosen and compared by")
    variants: VariantSet = Field(VariantSet.STANDARD, description="all, standard or quick")
    repeats: int = Field(1, ge=1, le=100, description="how often cross-fitting is repeated, with other parts")

    @model_validator(mode="after")
    def _ascending(self) -> ProofSettings:
        if min(self.pool_sizes) < 1 or list(self.pool_sizes) != sorted(set(self.pool_sizes)):
            raise ValueError(f"pool_sizes={list(self.pool_sizes)} must be positive and ascending")
        if max(self.pool_sizes) > LARGEST_POOL:
            raise ValueError(f"pool_sizes={list(self.pool_sizes)} must be at most {LARGEST_POOL:,}")
        return self


class Settings(_Section):
    """Everything that decides a run, but for its data."""

    seed: int = Field(0, ge=0)
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    sampling: SamplingSettings = SamplingSettings()
    learning: LearningSettings = LearningSettings()
    augmentation: AugmentationSettings = AugmentationSettings()
    pseudo_labels: PseudoLabelSettings = PseudoLabelSettings()
    implicit: ImplicitSettings = ImplicitSettings()
    proof: ProofSettings = ProofSettings()

    @property
    def total_steps(self) -> int:
        """Of both phases: with real data alone, then with what augmentation adds."""
        return self.learning.steps + self.augmentation.steps

    @property
    def augment_from_step(self) -> int:
        """The first step that sees synthetic examples or pseudo-labels."""
        given = self.augmentation.augment_from_step
        return self.learning.steps if given is None else given

    def with_second_phase(self) -> Settings:
        """The same with a second phase half as long as the first, where the settings name none."""
        steps = max(1, self.learning.steps // 2)
        return self.model_copy(update={"augmentation": self.augmentation.model_copy(update={"steps": steps})})

    def over(self, steps: int) -> Settings:
        """The same course over `steps` first steps: warm-up, ramps and evaluations shrink or grow with it."""
        learning, share = self.learning, steps / self.learning.steps
        lasting = {
            name: max(1, round(share * getattr(learning, name)))
            for name in ("mutual_information_ramp", "smoothness_ramp", "latent_smoothness_ramp", "evaluate_every")
        }
        changes = {"steps": steps, "warmup": round(share * learning.warmup), "checkpoint_every": steps, **lasting}
        return self.model_copy(update={"learning": learning.model_copy(update=changes)})

    def first_phase(self) -> Settings:
        """The same run without its second phase."""
        later = ("augmentation", "pseudo_labels", "implicit", "proof")
        return self.model_copy(update={name: Settings.model_fields[name].default for name in later})


def preset_names() -> list[str]:
    """The presets that ship with the package."""
    return sorted(path.name.removesuffix(".toml") for path in files("synthsieve").joinpath("presets").iterdir())


def load_settings(
    config: str | Path | None = None,
    overrides: Iterable[str] = (),
    base: Mapping[str, Any] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from `defaults`, a preset or TOML file, `base`, and each `a.b=c` of `overrides`; later ones win.

    `defaults` (a nested mapping) are those of a data set, `base` (another) is what a verb's own options say.
    """
    values: dict[str, Any] = {}
    for more in (defaults or {}, {} if config is None else _read(config), base or {}):
        _merge(values, more)
    for override in overrides:
        _merge(values, _parse_override(override))
    return settings_from(values)


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Check a nested mapping and turn it into `Settings`."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"settings must be sections of names and values, got {_shown(values)}")
    _refuse_unknown(values, Settings)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:2]) or "settings"  # deeper parts name types and places
        if "error" in first.get("ctx", {}):  # one of our own sentences, which says what came
            raise ConfigError(f"setting {where}: {first['ctx']['error']}") from None
        raise ConfigError(f"setting {where}: {first['msg'].lower()}, got {_shown(first['input'])}") from None


def _shown(value: Any) -> str:
    """What came, cut to fit into a sentence."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _read(config: str | Path) -> dict[str, Any]:
    path = Path(config)
    if path.suffix == ".toml" or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # of bytes that are no UTF-8, or of a name that no file can have
            raise ConfigError(f"cannot read the settings file {path}: {error}") from None
    elif str(config) in preset_names():
        text = files("synthsieve").joinpath("presets", f"{config}.toml").read_text(encoding="utf-8")
    else:
        raise ConfigError(f"no preset or TOML file named {str(config)!r}; the presets are: {', '.join(preset_names())}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is no TOMLDecodeError
        raise ConfigError(f"{config} is not valid TOML: {error}") from None


def _parse_override(override: str) -> dict[str, Any]:
    """`learning.steps=10` -> {"learning": {"steps": 10}}; a value that is no TOML value is taken as text."""
    name, equals, text = override.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set expects name=value, such as learning.steps=2000; got {override!r}")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = None if text.strip() == "none" else text.strip()
    for part in reversed(name.strip().split(".")):
        value = {part: value}
    return value


def _merge(values: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(values.get(name), dict):
            _merge(values[name], value)
        else:
            values[name] = dict(value) if isinstance(value, Mapping) else value


def _refuse_unknown(values: Mapping[str, Any], section: type[BaseModel], prefix: str = "") -> None:
    for name, value in values.items():
        if name not in section.model_fields:
            known = {field: prefix + field for field in section.model_fields}
            near = [known[field] for field in difflib.get_close_matches(name, known, n=1)] or _anywhere(name)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known.values())}"
            raise ConfigError(f"no setting is named {prefix + name}; {hint}")
        inner = section.model_fields[name].annotation
        if isinstance(value, Mapping) and isinstance(inner, type) and issubclass(inner, BaseModel):
            _refuse_unknown(value, inner, f"{prefix}{name}.")


def _anywhere(name: str) -> list[str]:
    """The nearest setting of any section."""
    everywhere = {
        field: f"{section}.{field}"
        for section, info in Settings.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
        for field in info.annotation.model_fields
    }
    return [everywhere[near] for near in difflib.get_close_matches(name.split(".")[-1], everywhere, n=1)]
