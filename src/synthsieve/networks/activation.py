"""The functions between two layers, and two ways to take them forward and back without a graph.

`Pass.plain` is torch's own pair of kernels. `Pass.fused` computes an activation and its slope together, from one
exponential, in single precision on the CPU: about a third of the time, and the same numbers to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from synthsieve.config import Activation

LEAKY_SLOPE = 0.2


def activate(activation: Activation, x: Tensor) -> Tensor:
    """The activation of x, differentiable. Same shape as x.

    GELU is x Phi(x) with Phi the normal distribution function (the exact one, not the tanh), SiLU is x sigmoid(x),
    leaky ReLU is x where x > 0, else 0.2 x.
    """
    if activation is Activation.GELU:
        return nn.functional.gelu(x)
    if activation is Activation.SILU:
        return nn.functional.silu(x)
    return nn.functional.leaky_relu(x, LEAKY_SLOPE)


@dataclass(frozen=True)
class Pass:
    """An activation forward and back through fixed buffers of one shape, without a graph.

    Attributes:
        forward: forward() reads the pre-activations in `kept`, writes their activation over `out`, and may write over
            `kept` what the way back needs.
        backward: backward(cotangent) writes cotangent * activation'(x) over `out`; the cotangent may be `out` itself.
    """

    forward: Callable[[], object]
    backward: Callable[[Tensor], object]

    @classmethod
    def of(cls, activation: Activation, kept: Tensor, out: Tensor) -> Pass:
        """The quicker pass that these buffers allow."""
        single_on_cpu = kept.dtype == torch.float32 and kept.device.type == "cpu"
        if single_on_cpu and activation is not Activation.LEAKY_RELU:
            return cls.fused(activation, kept, out)
        return cls.plain(activation, kept, out)

    @classmethod
    def plain(cls, activation: Activation, kept: Tensor, out: Tensor) -> Pass:
        """torch's kernels: any dtype, any device."""
        aten = torch.ops.aten
        if activation is Activation.GELU:
            return cls(
                forward=lambda: aten.gelu.out(kept, out=out),
                backward=lambda cotangent: aten.gelu_backward.grad_input(cotangent, kept, grad_input=out),
            )
        if activation is Activation.SILU:
            return cls(
                forward=lambda: aten.silu.out(kept, out=out),
                backward=lambda cotangent: aten.silu_backward.grad_input(cotangent, kept, grad_input=out),
            )
        return cls(
            forward=lambda: aten.leaky_relu.out(kept, LEAKY_SLOPE, out=out),
            backward=lambda cotangent: aten.leaky_relu_backward.grad_input(
                cotangent, kept, LEAKY_SLOPE, False, grad_input=out
            ),
        )

    @classmethod
    def fused(cls, activation: Activation, kept: Tensor, out: Tensor) -> Pass:
        """One loop that turns `kept` from the pre-activations into their slopes: float32 on the CPU, contiguous."""
        kernel = _kernels()[activation]
        kept_numbers, out_numbers = kept.view(-1).numpy(), out.view(-1).numpy()
        return cls(
            forward=lambda: kernel(kept_numbers, out_numbers),
            backward=lambda cotangent: torch.mul(cotangent, kept, out=out),
        )


@cache
def _kernels() -> dict[Activation, Callable[[np.ndarray, np.ndarray], None]]:
    """The compiled loops: kernel(x, out) writes activation(x) over out and activation'(x) over x."""
    import numba
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types
    from numba.extending import intrinsic

    # No flag here may assume away NaN or infinity: they must come through, for the sampler looks for them.
    # The numpy error model lets a division be part of a vector loop: Python's would branch on zero.
    compiled = numba.njit(fastmath={"contract", "nsz"}, error_model="numpy")
    inlined = numba.njit(fastmath={"contract", "nsz"}, error_model="numpy", inline="always")
    single = np.float32
    half, one, round_to_integer = single(0.5), single(1), single(12582912)  # the last is 1.5 * 2^23

    @intrinsic
    def bits_as_float(_: Any, bits: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.FloatType())

        return types.float32(types.int32), generate

    log2_e, ln2_high, ln2_low = single(1.4426950408889634), single(0.693359375), single(-2.12194440e-4)
    c2, c3, c4 = single(5.0000001201e-1), single(1.6666665459e-1), single(4.1665795894e-2)
    c5, c6, c7 = single(8.3334519073e-3), single(1.3981999507e-3), single(1.9875691500e-4)
    lowest, highest = single(-87), single(88)

    @inlined
    def exponential(x: Any) -> Any:
        """exp(x) = 2^k exp(r), r = x - k ln 2 within ln(2)/2: the Cephes polynomial, relative error 1e-7."""
        x = lowest if x < lowest else (highest if x > highest else x)
        k = (x * log2_e + round_to_integer) - round_to_integer
        r = x - k * ln2_high
        r = r - k * ln2_low
        series = (((((c7 * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r * r + r + one
        power_of_two = np.int32((np.int32(k) + np.int32(127)) << np.int32(23))  # the bits of 2^k
        return series * bits_as_float(power_of_two)  # type: ignore[call-arg]

    @compiled
    def silu(x: np.ndarray, out: np.ndarray) -> None:
        for i in range(x.size):
            v = x[i]
            sigmoid = one / (one + exponential(-v))
            value = v * sigmoid
            out[i] = value
            x[i] = sigmoid + value * (one - sigmoid)

    half_root, density_scale = single(0.7071067811865476), single(0.3989422804014327)  # sqrt(1/2), 1/sqrt(2 pi)
    p, a1, a2, a3 = single(0.3275911), single(0.254829592), single(-0.284496736), single(1.421413741)
    a4, a5 = single(-1.453152027), single(1.061405429)

    @compiled
    def gelu(x: np.ndarray, out: np.ndarray) -> None:
        """Abramowitz and Stegun 7.1.26: erfc(u) = (a1 t + ... + a5 t^5) exp(-u^2), t = 1 / (1 + p u), to 1.5e-7."""
        for i in range(x.size):
            v = x[i]
            bell = exponential(-half * v * v)
            t = one / (one + p * half_root * abs(v))
            tail = half * bell * t * (a1 + t * (a2 + t * (a3 + t * (a4 + t * a5))))
            cumulative = tail if v < 0 else one - tail
            out[i] = v * cumulative
            x[i] = cumulative + v * bell * density_scale

    return {Activation.SILU: silu, Activation.GELU: gelu}
