"""A device that is not the CPU and that every machine has: it computes on the CPU, but meets no tensor from there.

Mixing the two is an error, as on a GPU; its numbers are not numpy's; and it has no float64, like Apple's GPUs. What
trains here is ready for a GPU, as far as one can know without a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("far")
FAR = torch.device("far:0")
MOVES = ("copy_", "_to_copy", "_copy_from")


class Far(torch.Tensor):
    """A tensor over there; `near` holds its numbers."""

    near: torch.Tensor

    @staticmethod
    def __new__(cls, near: torch.Tensor) -> Far:
        self = torch.Tensor._make_wrapper_subclass(
            cls, near.shape, strides=near.stride(), storage_offset=near.storage_offset(), dtype=near.dtype, device=FAR
        )
        self.near = near
        return self

    def __init__(self, near: torch.Tensor) -> None:
        pass

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return run_on_cpu(operation, arguments, named or {})


def run_on_cpu(operation: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Compute on the CPU, and move the result to the device."""
    name = operation.name().removeprefix("aten::").partition(".")[0]

    def near(value: Any) -> Any:
        if isinstance(value, Far):
            return value.near
        if isinstance(value, torch.Tensor) and value.dim() and name not in MOVES:
            raise RuntimeError(f"{name} met a tensor of the CPU, of shape {tuple(value.shape)}")
        return torch.device("cpu") if isinstance(value, torch.device) else value

    done = operation(*tree_map(near, arguments), **tree_map(near, named))
    if name == "_to_copy" and torch.device(named.get("device") or FAR).type == "cpu":
        return done
    known = {id(value.near): value for value in tree_leaves((arguments, named)) if isinstance(value, Far)}

    def far(value: Any) -> Any:
        if value.dtype is torch.float64:
            raise RuntimeError(f"{name} made a tensor of float64, of shape {tuple(value.shape)}")
        return known[id(value)] if id(value) in known else Far(value)

    return tree_map(lambda value: far(value) if isinstance(value, torch.Tensor) else value, done)


_library = torch.library.Library("_", "IMPL")
_library.fallback(lambda operation, *arguments, **named: run_on_cpu(operation, arguments, named), "PrivateUse1")


def gru(x, state, weights, has_bias, layers, dropout, training, bidirectional, batch_first):  # type: ignore[no-untyped-def]
    """One layer of a GRU, by common operations: the kernels that torch has for its cells are those of real devices."""
    assert (has_bias, layers, bidirectional, batch_first) == (True, 1, False, True)
    of_input, of_state, input_bias, state_bias = weights
    states, now = [], state[0]
    for inputs in torch.nn.functional.linear(x, of_input, input_bias).unbind(dim=1):
        (ir, iz, new), (hr, hz, hn) = (
            inputs.chunk(3, 1),
            torch.nn.functional.linear(now, of_state, state_bias).chunk(3, 1),
        )
        new, update = (new + (ir + hr).sigmoid() * hn).tanh(), (iz + hz).sigmoid()
        now = new + update * (now - new)
        states.append(now)
    return torch.stack(states, dim=1), now.unsqueeze(0)


_aten = torch.library.Library("aten", "IMPL")
for _key in ("PrivateUse1", "AutogradPrivateUse1"):
    _aten.impl("gru.input", gru, _key)
