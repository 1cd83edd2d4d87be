"""Typed settings: every field with its range, default and meaning; loaded from presets, TOML files and `--set a.b=c`.

A run is described by one `Settings`. Presets are TOML files in `presets/`; a user's file and `--set` override them.
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

MAX_POOL_SIZE = 100_000_000
MAX_SHOWN = 200  # characters of a wrong value in an error
MAX_WIDTH = 65536
MAX_BATCH = 1_000_000
# Names of version 0.1.
RENAMED = {
    "learning": "training",
    "proof": "comparison",
    "augmentation.require_asked_class": "augmentation.require_label",
}


class NetworkKind(StrEnum):
    """Encoder and generator networks; `auto` takes `strided` for images and `mlp` for vectors."""

    AUTO = "auto"
    MLP = "mlp"
    STRIDED = "strided"
    RESIDUAL = "residual"
    WIDE_RESNET = "wide-resnet"
    DCGAN = "dcgan"


class Norm(StrEnum):
    """Normalization layers of a convolutional network."""

    GROUP = "group"
    BATCH = "batch"


class Activation(StrEnum):
    """Activation of the energy network."""

    GELU = "gelu"
    SILU = "silu"
    LEAKY_RELU = "leaky-relu"


class View(StrEnum):
    """Preprocessing of images for the label tower: none, local contrast normalization, or the same in grey."""

    PLAIN = "plain"
    CONTRAST = "contrast"
    GREY_CONTRAST = "grey-contrast"


class Classify(StrEnum):
    """Which z of q(z given x) is classified: its mean, or draws (one in training, the average of several later)."""

    MEAN = "mean"
    DRAW = "draw"


class ChainStart(StrEnum):
    """Where training chains start: at q(z given x), as in Algorithm 1, or at the reference p0."""

    POSTERIOR = "posterior"
    REFERENCE = "reference"


class Draw(StrEnum):
    """How latents are drawn.

    `langevin`: chains from N(0, I) on F(z)[y] + log N(z; 0, I), as in the paper. `mixture`: from the Gaussian mixture
    fitted to the encoded examples, weighted by p(y given z). `mixture+langevin`: chains that start there. `auto` is
    `mixture+langevin` where a mixture was fitted, else `langevin`.
    """

    AUTO = "auto"
    LANGEVIN = "langevin"
    MIXTURE = "mixture"
    MIXTURE_LANGEVIN = "mixture+langevin"


class Schedule(StrEnum):
    """Learning rate schedule after a linear warm-up: constant, or a cosine down to a twentieth."""

    CONSTANT = "constant"
    COSINE = "cosine"


class Precision(StrEnum):
    """Numbers of the networks in training: float32, or bfloat16 where torch's autocast uses it (losses stay float32).

    bfloat16 is refused where a test shows that it is wrong, or not faster: `synthsieve doctor` shows the result.
    """

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Latents(StrEnum):
    """Latents that latent smoothness may move: those of the style tower (all, with one tower), or all."""

    STYLE = "style"
    ALL = "all"


class Objective(StrEnum):
    """`joint` is Algorithm 1; `supervised` is the baseline with the same encoder and energy, on labelled rows only."""

    JOINT = "joint"
    SUPERVISED = "supervised"


class DrawFrom(StrEnum):
    """Where synthetic samples come from.

    `prior`: a pool of draws from p(z given y), filtered and selected. The others are drawn again at each step, around
    labelled x, whose label they take; q(z given x) is used by its mean. `labeled`: short chains on p(z given y) that
    start at q(z given x). `within-class`: z between or beyond two labelled x of a class. `style-swap`: the label
    latents of a labelled x with the style latents of an unlabelled one; needs two towers.
    """

    PRIOR = "prior"
    LABELED = "labeled"
    WITHIN_CLASS = "within-class"
    STYLE_SWAP = "style-swap"


class Targets(StrEnum):
    """What synthetic samples are trained toward: the class requested, or p(y given x) of the averaged weights."""

    HARD = "hard"
    SOFT = "soft"


class EntropyAt(StrEnum):
    """Where a sample's entropy is measured: at x, decoded and re-encoded (section 2.5), or at the drawn z (2.3)."""

    X = "x"
    Z = "z"


class Ceiling(StrEnum):
    """How the entropy ceiling is found: `auto` searches on validation."""

    AUTO = "auto"


class Coreset(StrEnum):
    """Which samples that pass the filter are used: all, a random part, a part whose latents follow those of the real
    rows (kernel herding), or a weighted part by CRAIG or AdaCore."""

    EVERYTHING = "everything"
    RANDOM = "random"
    HERDING = "herding"
    CRAIG = "craig"
    ADACORE = "adacore"


class GradientSource(StrEnum):
    """Gradients for the coreset: p - y at the re-encoded z, at the drawn z, or p - y times the input of F's last layer
    at the re-encoded z."""

    REENCODED = "reencoded"
    DRAWN = "drawn"
    LAST_LAYER = "last-layer"


class GradientThrough(StrEnum):
    """Steps of a chain that the implicit form's gradient passes through."""

    ALL = "all"
    LAST = "last"
    NOTHING = "nothing"


class Validation(StrEnum):
    """Where validation rows come from.

    `labels`: from the labelled rows themselves, by cross-fitting where they are few. `extra`: from further labelled
    rows other than the `labels` that train, for benchmarks whose labels are all known.
    """

    LABELS = "labels"
    EXTRA = "extra"


class Keep(StrEnum):
    """Which weights are kept: the best on validation, or the last."""

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


class ClassPrior(StrEnum):
    """The class shares that predictions assume.

    `labels`: those of the labels. `uniform`: equal shares, which is best for balanced accuracy. `model`: whatever the
    networks learned. `auto`: `uniform` where weights are chosen by balanced accuracy, else `labels`.
    """

    AUTO = "auto"
    LABELS = "labels"
    UNIFORM = "uniform"
    MODEL = "model"


class VariantSet(StrEnum):
    """Variants that `run` compares: all of the paper's table, these and further ways to use samples, a standard set, or
    the fewest."""

    ALL = "all"
    EXTENDED = "extended"
    STANDARD = "standard"
    QUICK = "quick"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataSettings(_Section):
    """Which labels are used, and which rows are held out."""

    labels: int | None = Field(None, ge=1, description="Number of labels to use; none uses all.")
    balanced: bool = Field(False, description="Use equally many labels of each class; false keeps the frequencies.")
    validation: Validation = Field(Validation.LABELS, description="Where validation rows come from.")
    validation_fraction: float | None = Field(
        None, ge=0, lt=1, description="Share of labelled rows for validation; none is 0.1, or cross-fitting with few."
    )
    test_fraction: float | None = Field(
        None, ge=0, lt=1, description="Share of labelled rows for testing; none is 0.2, or cross-fitting with few."
    )
    folds: int = Field(5, ge=3, le=100, description="Folds of cross-fitting, which is used below 300 labels.")
    fold: int | None = Field(None, ge=0, description="The fold that is held out; set by `run`.")


class ModelSettings(_Section):
    """Energy, encoder and generator."""

    latent_dim: int = Field(32, ge=1, le=MAX_WIDTH, description="Number of latents, of both towers together.")
    label_latent_dim: int = Field(0, ge=0, description="Latents of the label tower; 0: only one tower.")
    label_scale: float | None = Field(
        None, gt=0, description="Standard deviation of q of the label latents; none: computed by the label tower."
    )
    encoder: NetworkKind = Field(NetworkKind.AUTO, description="Encoder network.")
    encoder_width: int = Field(32, ge=1, le=MAX_WIDTH, description="Width of the encoder.")
    encoder_depth: int = Field(16, ge=1, le=1000, description="Layers of an mlp, or (6n + 4) of a wide ResNet.")
    label_encoder: NetworkKind = Field(NetworkKind.AUTO, description="Network of the label tower; auto is as encoder.")
    label_width: int = Field(32, ge=1, le=MAX_WIDTH, description="Width of the label tower.")
    view: View = Field(View.PLAIN, description="Image preprocessing of the label tower, or of the only tower.")
    norm: Norm = Field(Norm.GROUP, description="Normalization layers of convolutional networks.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Dropout rate of the label tower, or of the only tower.")
    feature_dropout: float = Field(0.0, ge=0, lt=1, description="Dropout rate between blocks of a residual encoder.")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="Share of words hidden from the text generator.")
    generator: NetworkKind = Field(NetworkKind.AUTO, description="Generator network.")
    generator_width: int = Field(32, ge=1, le=MAX_WIDTH, description="Width of the generator.")
    energy_width: int = Field(200, ge=1, le=MAX_WIDTH, description="Width of the energy network F.")
    energy_layers: int = Field(3, ge=1, le=1000, description="Fully connected layers of F.")
    energy_activation: Activation = Field(Activation.SILU, description="Activation of F.")
    style_in_energy: bool = Field(True, description="F sees the style latents; false: only those of the label tower.")
    observation_noise: float = Field(0.3, gt=0, description="Standard deviation sigma of p(x given z).")
    classify: Classify = Field(Classify.MEAN, description="Which z is used for prediction.")

    @model_validator(mode="after")
    def _towers_fit(self) -> ModelSettings:
        if self.label_latent_dim >= self.latent_dim:
            raise ValueError(f"label_latent_dim={self.label_latent_dim} must be below latent_dim={self.latent_dim}")
        return self


class SamplingSettings(_Section):
    """Langevin dynamics: z' = z + s grad log p(z) + sqrt(2 T s) noise."""

    draw: Draw = Field(Draw.AUTO, description="How latents are drawn.")
    num_steps: int = Field(60, ge=0, description="Langevin steps of a sample.")
    step_size: float = Field(0.08, gt=0, lt=2, description="Step size s; a noise scale of 0.4 = sqrt(2 s) is s = 0.08.")
    temperature: float = Field(1.0, ge=0, description="Temperature T of `sample`; 0 is gradient ascent.")
    training_steps: int = Field(20, ge=0, description="Langevin steps of the training chains.")
    training_start: ChainStart = Field(ChainStart.POSTERIOR, description="Where the training chains start.")


class TrainingSettings(_Section):
    """Algorithm 1, steps 1 to 6."""

    objective: Objective = Field(Objective.JOINT, description="Train on all rows, or on labelled rows only.")
    steps: int = Field(3000, ge=1, description="Training steps on real data.")
    batch_labeled: int = Field(100, ge=1, le=MAX_BATCH, description="Labelled examples per step.")
    batch_unlabeled: int = Field(100, ge=1, le=MAX_BATCH, description="Unlabelled examples per step.")
    cross_entropy_weight: float = Field(1.0, ge=0, description="Weight of the cross-entropy of the labels.")
    elbo_weight: float = Field(1.0, ge=0, description="Factor on the learning rates of steps 4 and 5.")
    feature_weight: float = Field(
        0.0, ge=0, description="Weight of the squared distance between label latents of x and of its reconstruction."
    )
    labeled_in_elbo: bool = Field(True, description="Labelled x also enter the ELBO (Appendix B).")
    train_on: Classify = Field(Classify.DRAW, description="Which z of q(z given x) the cross-entropy uses.")
    mutual_information_weight: float = Field(0.0, ge=0, description="Weight of H(mean p) - mean H(p) on unlabelled z.")
    mutual_information_ramp: int = Field(500, ge=1, description="Steps over which that weight rises from 0.")
    smoothness_weight: float = Field(0.0, ge=0, description="Weight of the change of p(y given x) near x.")
    smoothness_radius: float = Field(1.0, gt=0, description="Length of the change of x, as the label tower sees x.")
    smoothness_ramp: int = Field(500, ge=1, description="Steps over which that weight rises from 0.")
    confident_above: float = Field(
        1.0, gt=0, le=1, description="Smoothness pulls toward the predicted class itself above this probability."
    )
    average_targets: bool = Field(False, description="The averaged weights give the predictions of that target.")
    shift: int = Field(0, ge=0, le=16, description="Images move by up to so many pixels, at random, in training.")
    latent_smoothness_weight: float = Field(0.0, ge=0, description="The same for x + g(z + r) - g(z).")
    latent_smoothness_radius: float = Field(1.0, ge=0, description="Length of r, in latent units.")
    latent_smoothness_latents: Latents = Field(Latents.STYLE, description="Which latents r may change.")
    latent_smoothness_ramp: int = Field(500, ge=1, description="Steps over which that weight rises from 0.")
    graph_weight: float = Field(
        0.0, ge=0, description="Weight of the labels that a graph of nearest neighbours gives unlabelled x."
    )
    graph_neighbors: int = Field(5, ge=1, le=1000, description="Neighbours that each x has in this graph.")
    graph_until: float = Field(1.0, gt=0, le=1, description="That weight falls to 0 over this share of training.steps.")
    generator_ratio: float = Field(
        0.0, ge=0, description="Steps of the generator alone after the last step, as a multiple of steps."
    )
    label_tower_elbo_scale: float = Field(0.0, ge=0, le=1, description="Factor on the label tower's ELBO gradient.")
    label_kl_weight: float = Field(0.0, ge=0, description="Weight of KL(q || p0) of the label tower.")
    logit_penalty: float = Field(0.0, ge=0, description="L2 penalty on class logits and on f.")
    prior_learning_rate: float = Field(1e-4, gt=0, description="Learning rate of the prior (step 4).")
    elbo_learning_rate: float = Field(1e-3, gt=0, description="Learning rate of encoder and generator (step 5).")
    label_learning_rate: float = Field(1e-3, gt=0, description="Learning rate of the label update (step 6).")
    elbo_momentum: float = Field(0.9, ge=0, lt=1, description="First beta of Adam in step 5.")
    precision: Precision = Field(Precision.FLOAT32, description="Numbers of the networks in training.")
    schedule: Schedule = Field(Schedule.COSINE, description="Learning rate schedule.")
    warmup: int = Field(100, ge=0, description="Steps of the linear warm-up.")
    weight_decay: float = Field(1e-4, ge=0, description="Weight decay of the label update.")
    clip_gradient: float | None = Field(None, gt=0, description="Maximum gradient norm of each update; none: no limit.")
    ema_decay: float = Field(0.999, ge=0, lt=1, description="Decay of the averaged weights for prediction; 0: none.")
    evaluate_every: int = Field(250, ge=1, description="Steps between evaluations on validation.")
    checkpoint_every: int = Field(250, ge=1, description="Steps between checkpoints.")
    keep: Keep = Field(Keep.BEST, description="Which weights are kept where there are validation rows.")
    keep_metric: Metric = Field(Metric.ACCURACY, description="Metric of the best weights: plain or balanced.")
    class_prior: ClassPrior | tuple[float, ...] = Field(
        ClassPrior.AUTO, description="Class shares that predictions assume: a name, or a share for each class in order."
    )

    @property
    def generator_steps(self) -> int:
        """Steps of the generator alone, after the last step; predictions do not change."""
        return round(self.generator_ratio * self.steps)

    @model_validator(mode="after")
    def _is_a_prior(self) -> TrainingSettings:
        if isinstance(self.class_prior, tuple) and not (len(self.class_prior) > 1 and min(self.class_prior) > 0):
            given = list(self.class_prior)
            raise ValueError(f"class_prior={given} must be labels, uniform, model, or a number above 0 for each class")
        return self


class AugmentationSettings(_Section):
    """Algorithm 1, steps 7 and 8: samples are drawn, filtered, selected, and trained on with the labels."""

    steps: int = Field(0, ge=0, description="Steps after training.steps; 0 is no augmented training.")
    learning_rate: float = Field(0.5, gt=0, description="Factor on the learning rates at its start; then a cosine.")
    ema_decay: float = Field(0.99, ge=0, lt=1, description="Decay of the averaged weights in these steps.")
    augment_from_step: int | None = Field(None, ge=0, description="First step with them; none: training.steps.")
    enabled: bool = Field(True, description="Train on synthetic samples.")
    synthetic_loss_weight: float = Field(0.3, ge=0, description="Weight of the cross-entropy of synthetic samples.")
    batch_synthetic: int = Field(100, ge=1, le=MAX_BATCH, description="Synthetic samples per step.")
    draw_from: DrawFrom = Field(DrawFrom.PRIOR, description="Where synthetic samples come from.")
    anchored_steps: int = Field(10, ge=0, description="Langevin steps of chains that start at a labelled x.")
    residual: bool = Field(False, description="Around a labelled x: x + g(z') - g(z) instead of g(z').")
    targets: Targets = Field(Targets.HARD, description="What synthetic samples are trained toward.")
    reinitialise: bool = Field(False, description="Train a new label tower and F from the first of these steps on.")
    pool_size: int = Field(10000, ge=1, le=MAX_POOL_SIZE, description="Samples drawn, before the filter.")
    temperature: float = Field(1.0, ge=0, description="Temperature of the chains that draw the pool.")
    decode_noise: bool = Field(False, description="x = g(z) + sigma noise instead of g(z).")
    entropy_at: EntropyAt = Field(EntropyAt.X, description="Where the entropy of a sample is measured.")
    entropy_ceiling: float | Ceiling | None = Field(
        None, description="Maximum entropy in nats, above 0; auto searches on validation; none uses keep_fraction."
    )
    trial_steps: int = Field(100, ge=1, description="Steps of each trial of that search.")
    keep_fraction: float | None = Field(
        0.3, gt=0, le=1, description="Share of each class that is kept, by lowest entropy; used without a ceiling."
    )
    require_label: bool = Field(True, description="Reject samples that are classified as another class.")
    coreset: Coreset = Field(Coreset.CRAIG, description="Which of the samples that pass the filter are used.")
    coreset_fraction: float = Field(0.1, gt=0, le=1, description="Share of them that the coreset has.")
    gradients: GradientSource = Field(GradientSource.REENCODED, description="Gradients the coreset is selected by.")
    reselect_every: int = Field(10000, ge=1, description="Steps between selections.")
    fresh_pool: bool = Field(True, description="Draw a new pool for each selection; false scores the first z again.")

    @model_validator(mode="after")
    def _above_zero(self) -> AugmentationSettings:
        if isinstance(self.entropy_ceiling, float) and self.entropy_ceiling <= 0:
            raise ValueError(f"entropy_ceiling={self.entropy_ceiling} must be above 0 nats: try 1e-6")
        return self

    @model_validator(mode="after")
    def _can_encode(self) -> AugmentationSettings:
        if self.reinitialise and self.draw_from is not DrawFrom.PRIOR:
            raise ValueError(
                f"draw_from={self.draw_from.value} needs a trained encoder: use draw_from=prior with reinitialise=true"
            )
        return self


class PseudoLabelSettings(_Section):
    """Unlabelled x with low-entropy predictions are trained on with the predicted label."""

    enabled: bool = Field(True, description="Use pseudo-labels in augmented training.")
    loss_weight: float = Field(0.3, ge=0, description="Weight of their cross-entropy.")
    batch: int = Field(100, ge=1, le=MAX_BATCH, description="Pseudo-labelled examples per step.")
    entropy_ceiling: float | None = Field(None, gt=0, description="Maximum entropy in nats; none uses keep_fraction.")
    keep_fraction: float = Field(0.5, gt=0, le=1, description="Share of each predicted class kept, by lowest entropy.")
    reselect_every: int = Field(100, ge=1, description="Steps between selections.")


class ImplicitSettings(_Section):
    """Section 2.5: y -> z -> x -> z -> F as one differentiable chain."""

    enabled: bool = Field(False, description="Train with the implicit form.")
    real_fraction: float = Field(0.8, ge=0, le=1, description="Lambda: share of the real labels in the cross-entropy.")
    batch: int = Field(100, ge=1, le=MAX_BATCH, description="Chains per step.")
    num_steps: int = Field(20, ge=0, description="Langevin steps of a chain.")
    temperature: float = Field(1.0, ge=0, description="Temperature of the chains.")
    gradient: GradientThrough = Field(GradientThrough.NOTHING, description="Steps that the gradient passes through.")
    gradient_steps: int = Field(5, ge=0, description="Number of steps for gradient = last.")
    freeze_generator: bool = Field(True, description="The generator gets no gradient from this term.")


class ComparisonSettings(_Section):
    """What `run` and `reproduce` compare."""

    pool_sizes: tuple[int, ...] = Field((10000,), min_length=1, description="Pool sizes L, ascending.")
    baselines: bool = Field(True, description="Also train the supervised baseline and scikit-learn models.")
    metric: Metric = Field(Metric.AUTO, description="What variants are chosen and compared by.")
    variants: VariantSet = Field(VariantSet.STANDARD, description="Which variants are compared.")
    repeats: int = Field(1, ge=1, le=100, description="How often cross-fitting is repeated, with other folds.")

    @model_validator(mode="after")
    def _ascending(self) -> ComparisonSettings:
        sizes = list(self.pool_sizes)
        if min(sizes) < 1 or sizes != sorted(set(sizes)):
            raise ValueError(f"pool_sizes={sizes} must be positive and ascending")
        if max(sizes) > MAX_POOL_SIZE:
            raise ValueError(f"pool_sizes={sizes} must be at most {MAX_POOL_SIZE:,}")
        return self


class Settings(_Section):
    """Everything that determines a run, except its data."""

    seed: int = Field(0, ge=0, description="Random seed.")
    data: DataSettings = Field(DataSettings(), description="Labels and held-out rows.")
    model: ModelSettings = Field(ModelSettings(), description="Energy, encoder and generator.")
    sampling: SamplingSettings = Field(SamplingSettings(), description="Langevin dynamics.")
    training: TrainingSettings = Field(TrainingSettings(), description="Training on real data.")
    augmentation: AugmentationSettings = Field(AugmentationSettings(), description="Training with synthetic samples.")
    pseudo_labels: PseudoLabelSettings = Field(PseudoLabelSettings(), description="Training with pseudo-labels.")
    implicit: ImplicitSettings = Field(ImplicitSettings(), description="Training with the implicit form.")
    comparison: ComparisonSettings = Field(ComparisonSettings(), description="What is compared.")

    @property
    def total_steps(self) -> int:
        """Steps on real data, and after them with augmentation."""
        return self.training.steps + self.augmentation.steps

    @property
    def augment_from_step(self) -> int:
        """The first step that uses synthetic samples or pseudo-labels."""
        given = self.augmentation.augment_from_step
        return self.training.steps if given is None else given

    def with_retraining(self) -> Settings:
        """The same with augmented training that takes half as many steps as the training before it."""
        return self.changed("augmentation", steps=max(1, self.training.steps // 2))

    def pretrained(self) -> Settings:
        """The same without augmented training."""
        later = ("augmentation", "pseudo_labels", "implicit", "comparison")
        return self.model_copy(update={name: Settings.model_fields[name].default for name in later})

    def over(self, steps: int) -> Settings:
        """The same with `steps` training steps; warm-up, ramps and evaluations are scaled with them."""
        share = steps / self.training.steps
        ramps = ("mutual_information_ramp", "smoothness_ramp", "latent_smoothness_ramp", "evaluate_every")
        scaled = {name: max(1, round(share * getattr(self.training, name))) for name in ramps}
        warmup = round(share * self.training.warmup)
        return self.changed("training", steps=steps, warmup=warmup, checkpoint_every=steps, **scaled)

    def changed(self, section: str, **values: Any) -> Settings:
        """The same with other values in one section; they are not checked."""
        return self.model_copy(update={section: getattr(self, section).model_copy(update=values)})


def preset_names() -> list[str]:
    """The presets that are part of the package."""
    return sorted(path.name.removesuffix(".toml") for path in files("synthsieve").joinpath("presets").iterdir())


def preset_text(name: str) -> str:
    """The TOML text of a preset."""
    return files("synthsieve").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")


def load_settings(
    config: str | Path | None = None,
    overrides: Iterable[str] = (),
    base: Mapping[str, Any] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from `defaults`, a preset or TOML file, `base`, and each `a.b=c` of `overrides`; later ones win.

    `defaults` and `base` are nested mappings: the defaults of a data set, and options of a command.
    """
    values: dict[str, Any] = {}
    layers = [defaults or {}, {} if config is None else _read(config), base or {}, *map(_parse_override, overrides)]
    for layer in layers:
        _merge(values, layer)
    return settings_from(values)


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Validate a nested mapping."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        errors = error.errors()
    unknown = next((one for one in errors if one["type"] == "extra_forbidden"), None)
    if unknown is not None:
        raise _unknown_setting(".".join(map(str, unknown["loc"])))
    first = errors[0]
    name = ".".join(map(str, first["loc"][:2])) or "settings"  # deeper parts are types and positions
    if "error" in first.get("ctx", {}):  # raised by a validator above
        raise ConfigError(f"setting {name}: {first['ctx']['error']}", code="bad-setting")
    raise ConfigError(f"setting {name}: {first['msg'].lower()}, got {_shorten(first['input'])}", code="bad-setting")


def _unknown_setting(name: str) -> ConfigError:
    """The error for a name that is no setting, with the new name or the most similar one."""
    if name in RENAMED:
        old, new = (one if "." in one else f"{one}.*" for one in (name, RENAMED[name]))
        return ConfigError(f"setting {old} is now called {new}: use the new name", code="renamed-setting")
    section, _, field = name.rpartition(".")
    by_section = {
        prefix: list(info.annotation.model_fields)
        for prefix, info in Settings.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
    }
    known = by_section.get(section, list(Settings.model_fields))
    similar = [f"{section}.{one}" if section else one for one in difflib.get_close_matches(field, known, n=1)]
    similar += [f"{prefix}.{one}" for prefix, fields in by_section.items() for one in fields if one == field]
    hint = f"did you mean {similar[0]}?" if similar else f"known here: {', '.join(known)}"
    return ConfigError(f"no setting is named {name[:MAX_SHOWN]}; {hint}", code="unknown-setting")


def _shorten(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _read(config: str | Path) -> dict[str, Any]:
    """A preset or a TOML file as a nested mapping."""
    path, presets = Path(config), preset_names()
    try:
        if str(config) in presets:
            text = preset_text(str(config))
        elif path.suffix == ".toml" or path.is_file():
            text = path.read_text(encoding="utf-8")
        else:
            names = ", ".join(presets)
            message = f"no preset or TOML file is named {str(config)!r}; the presets are: {names}"
            raise ConfigError(message, code="unknown-preset")
    except (OSError, ValueError) as error:  # also of bytes that are not UTF-8, or of a name with a null character
        raise ConfigError(f"cannot read the settings file {path}: {error}", code="unreadable-settings") from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is no TOMLDecodeError
        raise ConfigError(f"{config} is not valid TOML: {error}", code="bad-toml") from None


def _parse_override(override: str) -> dict[str, Any]:
    """`training.steps=10` -> {"training": {"steps": 10}}; a value that is not TOML is taken as text."""
    name, equals, text = override.partition("=")
    if not equals or not name.strip():
        message = f"--set expects name=value, such as training.steps=2000, got {_shorten(override)}"
        raise ConfigError(message, code="bad-override")
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


def flat_settings(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
