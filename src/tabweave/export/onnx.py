"""onnx: value tables as a graph of label encoders and gathers, for any ONNX runtime."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import require
from tabweave.export.plan import Cuts, JointTable, Plan, ScorePlan, plan_of, scores_of
from tabweave.export.sql import is_float
from tabweave.io.files import replacing
from tabweave.space.space import Line, Lookup, Step, Sum

MAX_ONNX_BYTES = 2_000_000_000  # A protocol buffer holds no more.


def onnx(embedder: Any, path: str | PathLike[str] | None = None, *, missing: str = "") -> Any:
    """An ONNX model that embeds rows as ``transform`` does.

    Parameters
    ----------
    embedder : Embedder or Windowed
        A fitted embedder. Set-valued columns, columns with values of several types, and numbers
        that a transformer has mixed are refused.
    path : str or path, optional
        A file to write the model to, too.
    missing : str, default=""
        What stands for a missing cell in inputs of text, which have no other way to say it. Where
        a column has this very text as a value, as empty text may be, another must be given. Text
        that the schema reads as missing is missing in the graph, too.

    Returns
    -------
    onnx.ModelProto
        One input per column, named as the column, of shape (rows,); one output, ``vectors``, of
        shape (rows, dimensions). Of a :class:`~tabweave.BoostedWeave` the outputs are ``scores``,
        of shape (rows, scores), ``prediction`` and, of classes, ``probabilities``.

    Notes
    -----
    Columns of text are inputs of type string; whole numbers int64; fractions, and whole numbers
    with missing values, double with NaN for missing; booleans bool, or double if some were
    missing; datetimes double, the seconds since 1970 by the clock of the column's time zone, and
    numbers that were written as text the numbers. A value not seen in fit gets the unknown row; in
    a column that is compared by spelling the vector is NaN, since where it lies depends on all the
    others. Where the embedder would raise (``unknown="error"``, ``missing="error"``) the vector is
    NaN. ``metadata_props`` names the dimensions.

    Examples
    --------
    >>> import numpy as np, tabweave
    >>> rows = {"color": ["red", "blue", "red"], "size": [1, 2, 2]}
    >>> model = tabweave.export.onnx(tabweave.OneHot(schema="nominal").fit(rows))
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())
    >>> rows = {"color": np.array(["red", "pink"]), "size": np.array([2, 1])}
    >>> session.run(None, rows)[0].round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.33, 0.67, 1.  , 0.  ]])
    """
    package = require("onnx", "export")
    graph: OnnxGraph
    scores = scores_of(embedder)
    if scores is not None:
        _check_size([*scores.cells.lookups, *scores.terms], 8)
        graph = ScoreGraph(package, scores, missing)
    else:
        plan = plan_of(embedder)
        if not plan.names:
            raise ValueError("the vectors have no dimension: no column has two values")
        _check_size(plan.lookups, plan.dtype.itemsize)
        graph = OnnxGraph(package, plan, missing)
    model = graph.model()
    package.checker.check_model(model)
    if path is not None:
        with replacing(path) as temporary:
            temporary.write_bytes(model.SerializeToString(deterministic=True))
    return model


def _check_size(parts: Iterable[Lookup | JointTable], itemsize: int) -> None:
    """Raise for tables that no ONNX file holds."""
    size = sum(part.rows.size for part in parts) * itemsize
    if size > MAX_ONNX_BYTES:
        raise ValueError(f"the tables take {size:,} bytes, an ONNX file at most {MAX_ONNX_BYTES:,}")


class OnnxGraph:
    """Builds the graph of one plan."""

    outputs: ClassVar[tuple[str, ...]] = ("vectors",)

    def __init__(self, package: Any, plan: Plan, missing: str) -> None:
        self.helper, self.proto = package.helper, package.TensorProto
        self.arrays = package.numpy_helper
        self.plan, self.missing = plan, missing
        columns = [p.column for p in plan.lookups] + [p.column for p in plan.lines]
        self.stem = "tabweave/"  # of inner names, which must not be those of inputs
        while any(column.startswith(self.stem) for column in columns):
            self.stem += "/"
        self.inputs: dict[str, Any] = {}
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def model(self) -> Any:
        """The whole model."""
        outputs = [self._step(step) for step in self.plan.steps]
        vectors = [out for out, step in zip(outputs, self.plan.steps, strict=True) if step.width]
        self._output("vectors", "Concat", *vectors, axis=1)
        kind = self.helper.np_dtype_to_tensor_dtype(self.plan.dtype)
        shape = ["rows", len(self.plan.names)]
        output = self.helper.make_tensor_value_info("vectors", kind, shape)
        return self._model([output], self.plan.names)

    def _model(self, outputs: list[Any], names: list[str]) -> Any:
        """The model of what was added, with these outputs."""
        graph = self.helper.make_graph(
            self.nodes, "tabweave", list(self.inputs.values()), outputs, self.constants
        )
        opsets = [self.helper.make_opsetid(*opset) for opset in (("", 17), ("ai.onnx.ml", 4))]
        model = self.helper.make_model(graph, producer_name="tabweave", opset_imports=opsets)
        model.ir_version = 8  # read by runtimes since 2022
        self.helper.set_model_props(model, {"names": json.dumps(names), "missing": self.missing})
        return model

    def _step(self, step: Step) -> str:
        """Add the nodes of a step; the name of what comes out."""
        if isinstance(step, Line):
            return self._line(step)
        if isinstance(step, Sum):
            return self._node("Sum", *map(self._step, step.steps))
        return self._looked_up(step)

    def _looked_up(self, part: Lookup) -> str:
        """Add input → label encoder → gather; the name of what comes out."""
        keys = self._keys(part)
        cells = self._input(part.column, keys.dtype)
        if keys.dtype.kind == "b":
            cells = self._node("Cast", cells, to=self.proto.INT64)
            keys = keys.astype(np.int64)
        has_missing = _has_own_row(part)
        indices = np.minimum(np.arange(len(keys)), len(part.labels))  # all others are missing
        default = len(part.labels) + has_missing
        options: dict[str, Any] = {"values_int64s": indices, "default_int64": default}
        if keys.dtype.kind == "O":
            options["keys_strings"] = keys.tolist()
        elif keys.dtype.kind == "i":
            options["keys_int64s"] = keys
        else:
            options = {
                "keys_tensor": self.arrays.from_array(keys, "keys"),
                "values_tensor": self.arrays.from_array(indices, "indices"),
                "default_tensor": self.arrays.from_array(np.array([default]), "default"),
            }
        index = self._node("LabelEncoder", cells, domain="ai.onnx.ml", **options)
        null = np.full(part.width, np.nan)
        missing, unknown = (null if row is None else row for row in (part.missing, part.unknown))
        others = [missing, unknown] if has_missing else [unknown]
        table = self._constant(np.vstack([part.rows, *others]), self.plan.dtype)
        return self._node("Gather", table, index)

    def _keys(self, part: Lookup) -> np.ndarray:
        """The keys of a label encoder: the labels, then what is missing if that has its own row."""
        types = {type(label) for label in part.labels}
        if len(types) > 1 and not types <= {int, float}:
            names = ", ".join(sorted(t.__name__ for t in types))
            raise ValueError(
                f"column {part.column!r} has values of several types ({names}), and an input has "
                "one; make it text before fit"
            )
        if bytes in types:
            raise ValueError(
                f"column {part.column!r} has bytes, which ONNX does not read; decode them"
            )
        return self._text_keys(part) if types <= {str} else _number_keys(part)

    def _text_keys(self, part: Lookup) -> np.ndarray:
        if self.missing in part.labels:
            raise ValueError(
                f"column {part.column!r} has the value {self.missing!r}, which stands for missing; "
                "give another text as missing="
            )
        missing = {self.missing, *self.plan.missing_texts}.difference(part.labels)
        extra = sorted(missing) if _has_own_row(part) else []
        return np.array([*part.labels, *extra], dtype=object)

    def _number(self, part: Line | Cuts) -> str:
        """Add what makes the number of a cell, as a column; its name."""
        cells = self._input(part.column, np.dtype(np.float64))
        period = self.plan.period(part)
        if period is None:
            raise ValueError(
                f"column {part.column!r}: ONNX reads numbers, and {part.part!r} is computed from a "
                "cell; export SQL, or give its numbers columns"
            )
        if period:
            cells = self._phase(cells, period)
        return self._node("Unsqueeze", cells, self._constant([1], np.int64))

    def _line(self, part: Line) -> str:
        x = self._number(part)
        if part.knots is None:
            centred = self._node("Sub", x, self._constant(part.mean))
            points = self._node("Mul", centred, self._constant(part.factor))
        else:
            points = self._pieces(x, part)
        missing = np.full(part.width, np.nan) if part.missing is None else part.missing
        points = self._node("Where", self._node("IsNaN", x), self._constant(missing), points)
        return self._node("Cast", points, to=self.helper.np_dtype_to_tensor_dtype(self.plan.dtype))

    def _phase(self, cells: str, period: float) -> str:
        """What is left of numbers over whole periods."""
        length = self._constant(period)
        n_periods = self._node("Floor", self._node("Div", cells, length))
        return self._node("Sub", cells, self._node("Mul", n_periods, length))

    def _pieces(self, x: str, part: Any) -> str:
        """The points of numbers on curves: what each piece adds, as far as it is walked.

        Each piece counts from its first knot, so that no digit is lost however far they lie apart.
        """
        highest, lowest = np.ones(len(part.knots) - 1), np.zeros(len(part.knots) - 1)
        highest[-1], lowest[0] = np.inf, -np.inf  # the outer pieces go on
        from_start = self._node("Sub", x, self._constant(part.knots[:-1]))
        steps = self._node("Div", from_start, self._constant(np.diff(part.knots)))
        steps = self._node("Max", steps, self._constant(lowest))
        steps = self._node("Min", steps, self._constant(highest))
        added = self._node("MatMul", steps, self._constant(np.diff(part.rows, axis=0)))
        return self._node("Add", added, self._constant(part.rows[0]))

    def _input(self, column: str, dtype: np.dtype) -> str:
        if column in ("", *self.outputs):
            raise ValueError(f"column {column!r} cannot be an input of that name; rename it")
        kind = self.proto.STRING
        if dtype.kind != "O":
            kind = self.helper.np_dtype_to_tensor_dtype(dtype)
        if column not in self.inputs:  # a column may have several tables
            self.inputs[column] = self.helper.make_tensor_value_info(column, kind, ["rows"])
        return column

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; the name of its output."""
        name = f"{self.stem}{operator} {len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def _output(self, name: str, operator: str, *inputs: str, **attributes: Any) -> None:
        """Add a node whose output is one of the model."""
        self.nodes.append(self.helper.make_node(operator, inputs, [name], **attributes))

    def _constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add an array; its name."""
        name = f"{self.stem}constant {len(self.constants)}"
        self.constants.append(self.arrays.from_array(np.asarray(value, dtype), name))
        return name


class ScoreGraph(OnnxGraph):
    """Builds the graph of one plan of scores: codes of cells, what they add, probabilities."""

    outputs: ClassVar[tuple[str, ...]] = ("scores", "probabilities", "prediction")

    def __init__(self, package: Any, scores: ScorePlan, missing: str) -> None:
        super().__init__(package, scores.cells, missing)
        self.scores = scores

    def model(self) -> Any:
        """The whole model."""
        if not self.scores.terms:
            raise ValueError("the score is the same for all rows: no column tells the target")
        codes = [self._code(axis) for axis in self.scores.axes]
        total = self._constant(self.scores.intercept[None])
        for term in self.scores.terms:
            joint = self._joint(term, codes)
            is_refused = self._node("IsNaN", joint)
            index = self._node("Where", is_refused, self._constant(0.0), joint)
            index = self._node("Squeeze", index, self._constant([1], np.int64))
            index = self._node("Cast", index, to=self.proto.INT64)
            added = self._node("Gather", self._constant(term.rows), index)
            added = self._node("Where", is_refused, self._constant(np.nan), added)
            total = self._node("Add", total, added)
        self._output("scores", "Identity", total)
        return self._model(self._answers(total), self.scores.names)

    def _answers(self, total: str) -> list[Any]:
        """Add the prediction and the probability of each class; all outputs."""
        info, classes = self.helper.make_tensor_value_info, self.scores.classes
        double = self.proto.DOUBLE
        outputs = [info("scores", double, ["rows", len(self.scores.intercept)])]
        if classes is None:
            self._output("prediction", "Squeeze", total, self._constant([1], np.int64))
            return [*outputs, info("prediction", double, ["rows"])]
        if len(self.scores.intercept) == 1:
            first = self._node("Sigmoid", self._node("Neg", total))
            self._output("probabilities", "Concat", first, self._node("Sigmoid", total), axis=1)
        else:
            self._output("probabilities", "Softmax", total, axis=1)
        labels = np.array(classes, object if isinstance(classes[0], str) else None)
        best = self._node("ArgMax", "probabilities", axis=1, keepdims=0)
        self._output("prediction", "Gather", self._constant(labels, labels.dtype), best)
        kind = self.proto.STRING
        if labels.dtype != object:
            kind = self.helper.np_dtype_to_tensor_dtype(labels.dtype)
        shares = info("probabilities", double, ["rows", len(classes)])
        return [*outputs, shares, info("prediction", kind, ["rows"])]

    def _code(self, axis: Lookup | Cuts) -> str:
        """Add what makes the code of a cell, a number; the name of the column."""
        if isinstance(axis, Lookup):
            return self._looked_up(axis)
        x = self._number(axis)
        below = self._node("LessOrEqual", self._constant(axis.edges[None]), x)
        n_edges = self._node("Cast", below, to=self.proto.DOUBLE)
        code = self._node("ReduceSum", n_edges, self._constant([1], np.int64))
        missing = self._constant(np.nan if axis.missing is None else axis.missing)
        return self._node("Where", self._node("IsNaN", x), missing, code)

    def _joint(self, term: JointTable, codes: list[str]) -> str:
        """Add the joint code of a term; its name."""
        parts = [
            self._node("Mul", codes[axis], self._constant(float(stride)))
            for axis, stride in zip(term.axes, term.strides, strict=True)
        ]
        return self._node("Sum", *parts)


def _number_keys(part: Lookup) -> np.ndarray:
    """The numbers or booleans of a label encoder, NaN last if a missing cell has its own row."""
    types, has_missing = {type(label) for label in part.labels}, _has_own_row(part)
    numbers: list[Any] = list(part.labels)
    if not has_missing and types == {bool}:
        return np.array(numbers, dtype=bool)
    if not has_missing and types == {int} and all(abs(n) < 2**63 for n in numbers):
        return np.array(numbers, dtype=np.int64)
    for n in numbers:
        if type(n) is int and not is_float(n):
            raise ValueError(
                f"column {part.column!r}: expected numbers of float64, got {n}; int64 does not "
                "hold the others, or has no way to say missing: make the column text before fit"
            )
    return np.array([*numbers, np.nan] if has_missing else numbers, dtype=np.float64)


def _has_own_row(part: Lookup) -> bool:
    """Whether a missing cell is something else than an unknown value."""
    return part.missing is not part.unknown
