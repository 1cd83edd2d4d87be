"""Sixteen distances at a time, as LLVM vector code.

Points lie in tiles of sixteen neighbours, coordinate by coordinate, so that one vector operation handles a whole tile.
They may be stored in float32 and are float64 as soon as they are loaded. The vector operations are written out: every
distance is then the same sequence of roundings in every kernel, on every thread and on every machine, so that gains can
be compared for equality.

A distance is a whole number of *units* (a power of two chosen so that no sum of distances leaves float64's exact
integers). Sums of units do not depend on their order.
"""

from __future__ import annotations

from typing import Any

import numba.extending
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from synthsieve.selection.kernels.compiled import kernel

LANES = 16
intrinsic: Any = numba.extending.intrinsic

_DOUBLE = ir.DoubleType()
_INT = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)


class _Vectors:
    """Builds vector code: the operations that the kernels need, by name."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self.signature, self.arguments = signature, arguments

    def data(self, position: int) -> ir.Value:
        """The first element of the array argument at `position`."""
        array_type = self.signature.args[position]
        return self.context.make_array(array_type)(self.context, self.builder, self.arguments[position]).data

    def extent(self, position: int, axis: int) -> ir.Value:
        array_type = self.signature.args[position]
        array = self.context.make_array(array_type)(self.context, self.builder, self.arguments[position])
        return self.builder.extract_value(array.shape, axis)

    def splat(self, scalar: ir.Value) -> ir.Value:
        single = self.builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(single, ir.Constant(_VECTOR, ir.Undefined), mask)

    def constant(self, value: float) -> ir.Value:
        return ir.Constant(_VECTOR, [value] * LANES)

    def load(self, pointer: ir.Value, offset: ir.Value) -> ir.Value:
        """Sixteen numbers in a row as float64, from float64 or float32."""
        single = pointer.type.pointee == ir.FloatType()
        kind = ir.VectorType(ir.FloatType(), LANES) if single else _VECTOR
        place = self.builder.bitcast(self.builder.gep(pointer, [offset]), kind.as_pointer())
        loaded = self.builder.load(place, align=4 if single else 8)
        return self.builder.fpext(loaded, _VECTOR) if single else loaded

    def store(self, value: ir.Value, pointer: ir.Value, offset: ir.Value) -> None:
        place = self.builder.bitcast(self.builder.gep(pointer, [offset]), _VECTOR.as_pointer())
        self.builder.store(value, place, align=8)

    def load_scalar(self, pointer: ir.Value, offset: ir.Value) -> ir.Value:
        loaded = self.builder.load(self.builder.gep(pointer, [offset]))
        return self.builder.fpext(loaded, _DOUBLE) if loaded.type == ir.FloatType() else loaded

    def call(self, name: str, *values: ir.Value) -> ir.Value:
        module, full_name = self.builder.module, f"{name}.v{LANES}f64"
        function = module.globals.get(full_name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(_VECTOR, [_VECTOR] * len(values)), full_name)
        return self.builder.call(function, values)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.call("llvm.fma", a, b, c)

    def larger(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def sum_over(self, first: ir.Value, last: ir.Value, term: Any) -> ir.Value:
        """Accumulate `term(k, total)` for k in [first, last), from zero."""
        builder = self.builder
        before, loop = builder.block, builder.append_basic_block("dimension")
        body, after = builder.append_basic_block("body"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, total = builder.phi(_INT), builder.phi(_VECTOR)
        k.add_incoming(first, before)
        total.add_incoming(self.constant(0.0), before)
        builder.cbranch(builder.icmp_signed("<", k, last), body, after)
        builder.position_at_end(body)
        next_total = term(k, total)
        next_k = builder.add(k, _INT(1))
        k.add_incoming(next_k, builder.block)
        total.add_incoming(next_total, builder.block)
        builder.branch(loop)
        builder.position_at_end(after)
        return total

    def units(self) -> ir.Value:
        """Whole units between one source point and the sixteen points of a tile.

        Arguments by position: 0 coords (tiles, d, 16), 1 norms (tiles, 2, 16), 2 tile, 3 source coords, 4 source norms,
        5 source block, 6 source lane, 7 split, 8 scale. Columns from `split` on are features of a last layer: then
        the distance is that between outer products, from the two parts' distances and norms alone:

            |g g' - h h'|^2 = |dg|^2 (H + H')/2 + (G + G')/2 |dh|^2 - |dg|^2 |dh|^2 / 2 + (G - G')(H - H') / 2
        """
        builder, arguments = self.builder, self.arguments
        dims, lanes = self.extent(0, 1), _INT(LANES)
        tile = builder.mul(arguments[2], builder.mul(dims, lanes))
        source = builder.add(builder.mul(arguments[5], builder.mul(dims, lanes)), arguments[6])
        coords, source_coords, split = self.data(0), self.data(3), arguments[7]

        def term(k: ir.Value, total: ir.Value) -> ir.Value:
            step = builder.mul(k, lanes)
            here = self.load(coords, builder.add(tile, step))
            there = self.splat(self.load_scalar(source_coords, builder.add(source, step)))
            difference = builder.fsub(here, there)
            return self.fma(difference, difference, total)

        squared = self.sum_over(_INT(0), split, term)
        plain = builder.block
        outer, joined = builder.append_basic_block("outer_product"), builder.append_basic_block("distance")
        builder.cbranch(builder.icmp_signed("<", split, dims), outer, joined)
        builder.position_at_end(outer)
        other = self.sum_over(split, dims, term)
        product = self._outer_product(squared, other)
        last = builder.block
        builder.branch(joined)
        builder.position_at_end(joined)
        result = builder.phi(_VECTOR)
        result.add_incoming(squared, plain)
        result.add_incoming(product, last)
        scaled = builder.fmul(self.call("llvm.sqrt", result), self.splat(arguments[8]))
        return self.call("llvm.rint", scaled)

    def _outer_product(self, dg: ir.Value, dh: ir.Value) -> ir.Value:
        builder, arguments = self.builder, self.arguments
        norms, source_norms, pair = self.data(1), self.data(4), _INT(2 * LANES)
        here = builder.mul(arguments[2], pair)
        there = builder.add(builder.mul(arguments[5], pair), arguments[6])
        g = self.load(norms, here)
        h = self.load(norms, builder.add(here, _INT(LANES)))
        g_source = self.splat(self.load_scalar(source_norms, there))
        h_source = self.splat(self.load_scalar(source_norms, builder.add(there, _INT(LANES))))
        half = self.constant(0.5)
        total = builder.fmul(dg, builder.fmul(half, builder.fadd(h, h_source)))
        total = self.fma(builder.fmul(half, builder.fadd(g, g_source)), dh, total)
        total = builder.fsub(total, builder.fmul(half, builder.fmul(dg, dh)))
        cross = builder.fmul(builder.fsub(g, g_source), builder.fsub(h, h_source))
        total, zero = self.fma(half, cross, total), self.constant(0.0)
        # Rounding may leave a little less than zero; where there is no point the result is NaN and stays NaN.
        return builder.select(builder.fcmp_ordered("<", total, zero), zero, total)

    def squared_gaps(
        self, first: ir.Value, near: ir.Value, far: ir.Value, corner: ir.Value, low: ir.Value, high: ir.Value
    ) -> ir.Value:
        """Squared distances from sixteen boxes `near` to `far` (points, if the same) to the box `low` to `high`.

        `first` and `corner` are the places of the sixteen boxes and of the one.
        """
        builder = self.builder

        def term(k: ir.Value, total: ir.Value) -> ir.Value:
            place = builder.add(first, builder.mul(k, _INT(LANES)))
            below = self.splat(self.load_scalar(low, builder.add(corner, k)))
            above = self.splat(self.load_scalar(high, builder.add(corner, k)))
            gap = self.larger(builder.fsub(self.load(near, place), above), builder.fsub(below, self.load(far, place)))
            gap = self.larger(gap, self.constant(0.0))
            return self.fma(gap, gap, total)

        return self.sum_over(_INT(0), self.extent(0, 1), term)

    def nearer_by(self, units: ir.Value, reach: ir.Value, weight: ir.Value) -> ir.Value:
        """Whole units that points of `weight` gain when their reach falls to `units`: rint(weight (reach - units)+)."""
        shortfall = self.larger(self.builder.fsub(reach, units), self.constant(0.0))
        return self.call("llvm.rint", self.builder.fmul(weight, shortfall))


def _units_arguments(coords: Any, source: Any) -> tuple[Any, ...]:
    norms = types.Array(types.float64, 3, "C")
    return (coords, norms, types.int64, source, norms, types.int64, types.int64, types.int64, types.float64)


@intrinsic
def units_to_tile(  # type: ignore[no-untyped-def]
    typing_context, coords, norms, tile, source, source_norms, block, lane, split, scale, out
):
    """Write into `out` (16,) the units from one source point to each point of a tile."""
    signature = types.void(*_units_arguments(coords, source), types.Array(types.float64, 1, "C"))

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        vectors = _Vectors(context, builder, signature, arguments)
        vectors.store(vectors.units(), vectors.data(9), _INT(0))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def shift_gains(  # type: ignore[no-untyped-def]
    typing_context, coords, norms, tile, source, source_norms, block, lane, split, scale, gains, weight, old, new
):
    """Change a tile's `gains` (tiles, 16) by what one source point's reach, gone from `old` to `new`, changes."""
    tail = (types.Array(types.float64, 2, "C"), types.float64, types.float64, types.float64)
    signature = types.void(*_units_arguments(coords, source), *tail)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        vectors = _Vectors(context, builder, signature, arguments)
        units = vectors.units()
        weight = vectors.splat(arguments[10])
        was = vectors.nearer_by(units, vectors.splat(arguments[11]), weight)
        now = vectors.nearer_by(units, vectors.splat(arguments[12]), weight)
        place = builder.mul(arguments[2], _INT(LANES))
        gains = vectors.load(vectors.data(9), place)
        vectors.store(builder.fadd(gains, builder.fsub(now, was)), vectors.data(9), place)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_gains(  # type: ignore[no-untyped-def]
    typing_context, coords, norms, tile, source, source_norms, block, lane, split, scale, gains, weight, reach,
    weights, reaches, of_source,
):  # fmt: skip
    """Add to a tile's `gains` what its points gain by one source point, and to row `lane` of `of_source` (16, 16) what
    that gains by each of them. `weight` and `reach` are those of the source, `weights` and `reaches` (tiles, 16)."""
    square = types.Array(types.float64, 2, "C")
    tail = (square, types.float64, types.float64, square, square, square)
    signature = types.void(*_units_arguments(coords, source), *tail)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        vectors = _Vectors(context, builder, signature, arguments)
        units = vectors.units()
        place = builder.mul(arguments[2], _INT(LANES))
        row = builder.mul(arguments[6], _INT(LANES))
        of_tile = vectors.nearer_by(units, vectors.splat(arguments[11]), vectors.splat(arguments[10]))
        weights, reaches = (vectors.load(vectors.data(position), place) for position in (12, 13))
        of_source = vectors.nearer_by(units, reaches, weights)
        for gained, position, at in ((of_tile, 9, place), (of_source, 14, row)):
            total = vectors.load(vectors.data(position), at)
            vectors.store(builder.fadd(total, gained), vectors.data(position), at)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def lowest_bit(typing_context, bits):  # type: ignore[no-untyped-def]
    """The place of the lowest bit set in `bits`, which must not be 0."""
    signature = types.int64(types.int64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@intrinsic
def boxes_within(  # type: ignore[no-untyped-def]
    typing_context, boxes_low, boxes_high, sixteen, low, high, box, limit
):
    """A bit for each of sixteen boxes that lies nearer than `limit` to one box."""
    cube, square = types.Array(types.float64, 3, "C"), types.Array(types.float64, 2, "C")
    signature = types.int64(cube, cube, types.int64, square, square, types.int64, types.float64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        vectors = _Vectors(context, builder, signature, arguments)
        dims = vectors.extent(0, 1)
        other_low, other_high, low, high = (vectors.data(position) for position in (0, 1, 3, 4))
        first = builder.mul(arguments[2], builder.mul(dims, _INT(LANES)))
        squared = vectors.squared_gaps(first, other_low, other_high, builder.mul(arguments[5], dims), low, high)
        most = vectors.splat(builder.fmul(arguments[6], arguments[6]))
        inside = builder.fcmp_ordered("<", squared, most)
        return builder.zext(builder.bitcast(inside, ir.IntType(LANES)), _INT)

    return signature, generate


@intrinsic
def lanes_within(  # type: ignore[no-untyped-def]
    typing_context, near, far, block, low, high, box, scale, reach
):
    """A bit for each of the sixteen boxes `near` to `far` (points, if the same) of a block whose `reach` (blocks, 16)
    extends into a box: distance < reach."""
    square = types.Array(types.float64, 2, "C")
    signature = types.int64(near, far, types.int64, square, square, types.int64, types.float64, square)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        vectors = _Vectors(context, builder, signature, arguments)
        dims, lanes = vectors.extent(0, 1), _INT(LANES)
        near, far, low, high = (vectors.data(position) for position in (0, 1, 3, 4))
        first = builder.mul(arguments[2], builder.mul(dims, lanes))
        squared = vectors.squared_gaps(first, near, far, builder.mul(arguments[5], dims), low, high)
        distance = builder.fmul(vectors.call("llvm.sqrt", squared), vectors.splat(arguments[6]))
        reach = vectors.load(vectors.data(7), builder.mul(arguments[2], lanes))
        inside = builder.fcmp_ordered("<", distance, reach)
        return builder.zext(builder.bitcast(inside, ir.IntType(LANES)), _INT)

    return signature, generate


@kernel
def probe(coords, norms, out):  # type: ignore[no-untyped-def]
    """Eighths of a length from point 1 to each point of the only tile, in two dimensions."""
    units_to_tile(coords, norms, 0, coords, norms, 0, 1, 2, 8.0, out)
