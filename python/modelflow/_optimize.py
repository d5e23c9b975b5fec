"""modelflow.optimize: what the command does, for models in memory, with data and scores from Python."""
from __future__ import annotations

import os
import pathlib
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import errors
from ._folder import Folder
from ._kinds import kind_of, unwrapped
from ._names import names
from ._result import Result, refuse_unwritable
from ._run import Run
from ._session import session
from .report import Miss, Report


def optimize(model: Any, output: Union[None, str, os.PathLike[str]] = None, *, level: Union[str, int] = "O2", target: Optional[str] = None,
             precision: str = "float32", calibration: Any = None, observer: Optional[str] = None,
             score: Optional[Callable[[Any], float]] = None, max_drop: Optional[float] = None, metric: Optional[str] = None,
             inputs: Any = None, input_shapes: Optional[Mapping[str, Sequence[int]]] = None, bind: Optional[Mapping[str, Any]] = None, outputs: Iterable[str] = (), drop_outputs: Iterable[str] = (),
             custom_ops: Iterable[Union[str, os.PathLike[str]]] = (),
             disable: Iterable[str] = (), enable: Iterable[str] = (), tolerance: Optional[float] = None, threads: Optional[int] = None, measure: bool = True,
             verify: bool = True, profile: bool = True, max_seconds: Optional[float] = None, verify_seconds: Optional[float] = None,
             max_memory: Union[None, int, str] = None,
             timeout: Optional[float] = None, max_nodes: Optional[int] = None, max_depth: Optional[int] = None,
             reproducer: Union[None, str, os.PathLike[str]] = None, external_data: Optional[str] = None,
             progress: Optional[Callable[[str, float], Any]] = None) -> Result:
    """Makes an ONNX model faster on this machine without changing what it computes; verified and measured.

        result = modelflow.optimize("model.onnx", "fast.onnx")
        session = modelflow.session("fast.onnx")

    model: a path, bytes, onnx.ModelProto, onnx_ir.Model or torch.onnx.ONNXProgram; Result.model is of the same kind.
        Or what optimize, merge or torch.export gave, for the model in it. It is not changed. Models with weights in other files go by path.
    output: also write the result there; with a path as `model`, Result.model is this path.
    level: "O0" reads, checks and writes; "O1" keeps to standard ops, for any runtime; "O2" fuses ops.
    target: "cpu" (this machine), "cpu:avx2", "cpu:avx512_vnni", ...
    precision: "float32", "bf16", "int8", "int8-dynamic", "int8-weights", "int4-weights", "auto", ...
    calibration: samples for "int8" (and "int4-weights", "auto"), some hundred: any iterable of dicts {input name: array} or of
        tuples of arrays in the order of the model's inputs (labels behind them are left out), of the model's own dtypes and
        shapes, batch included. Lists and DataLoaders are iterated several times, always in the same order; generators and
        ONNX Runtime's CalibrationDataReader are kept in memory. Or a path: a folder of .npz files, or one.
    observer: "auto", "minmax", "average", "percentile", "entropy" or "mse".
    score: a figure of merit, higher is better: called with an onnxruntime.InferenceSession of the model to be scored.
    max_drop: per cent of the score, or of the metric, that lower precision may cost (1).
    metric: what max_drop bounds without a score: "cosine", "l2" or "top1".
    inputs: as calibration, held in memory: what original and result are verified and timed on; made up where absent.
    input_shapes: {input name: shape}, for inputs made up for dynamic models.
    bind: {input name: number or array}: inputs that become constants; unused branches go.
    custom_ops: libraries of custom operators that the model needs, as onnxruntime.SessionOptions registers them.
    outputs, drop_outputs: only these outputs (values inside of the model among them), or all but these.
    disable, enable: names of stages, passes or rules (docs/passes.md); what is enabled stays on in what is disabled.
    tolerance: largest difference of an output, relative to its largest value; default: docs/report.md.
    threads: for timing; default: all cores.
    measure, verify: False leaves timing (the cost model decides) or the comparison out.
    profile: False leaves times of nodes and memory out of the report, which take some seconds of what `measure` takes.
    max_seconds, timeout: seconds for measuring (600), and for all (7200; 0: none).
    verify_seconds: how long the original may run on made-up inputs (2; or 2 runs for each second, at most 4): more inputs, surer results.
    max_memory: bytes, or "8G"; default: nine tenths of the machine.
    max_nodes, max_depth: bounds of what a model may hold.
    reproducer: a folder for the smallest model that shows a fault, should verification find one.
    external_data: "auto", "always" or "never", for what is written to `output`.
    progress: called with the name of each step and how much of it is done, 0 to 1.

    Callbacks run on the calling thread, and exceptions raised in them come out as they are. Ctrl-C ends a run within a
    second (what the library is at then may go on for the rest of its step, unseen). The interpreter's lock is free
    meanwhile, and several threads may optimize at once, though their timings disturb one another.

    Raises a class of modelflow.errors: UsageError, InvalidInputError (both ValueErrors), UnsupportedError,
    VerificationError, OutputError (an OSError), LimitError, InternalError. TypeError for arrays that are no tensors.
    """
    refuse_contradictions(precision, calibration, observer=observer, score=score, max_drop=max_drop, metric=metric)
    run, custom_ops = Run(), names("custom_ops", custom_ops)  # the score's sessions take them too
    limits = {"max_memory": max_memory, "timeout": timeout, "max_nodes": max_nodes, "max_depth": max_depth}
    run.set_flags(measure=measure, verify=verify, profile=profile)
    run.set_given(level=f"O{level}" if isinstance(level, int) else level, target=target, precision=precision, observer=observer, max_drop=max_drop,
                  metric=metric, tolerance=tolerance, threads=threads, max_seconds=max_seconds, verify_seconds=verify_seconds,
                  reproducer=reproducer and os.fsdecode(reproducer), external_data=external_data, **limits)
    for key, what, values in (("disable", "disable", disable), ("enable", "enable", enable), ("output", "outputs", outputs),
                              ("drop_output", "drop_outputs", drop_outputs), ("custom_ops", "custom_ops", custom_ops)):
        run.set_each(key, values, what)
    run.set_shapes(input_shapes)
    for name, value in (bind or {}).items():
        run.bind(name, value)
    run.set_data("calibration", calibration)
    run.set_data("inputs", inputs)
    if score is not None:
        run.set_score(lambda path: score(session(path, threads=threads, custom_ops=custom_ops)))
    if progress is not None:
        run.set_progress(progress)
    return _finished(run, model, output, limits, external_data)


def explain(model: Any, **options: Any) -> list[Miss]:
    """What almost fired: of every rule the closest miss with the reason, the most promising first. Options as for
    optimize(); unlike `optimize --explain` it measures nothing unless `measure=True` is among them."""
    report = optimize(model, **{"measure": False, **options}).report
    closest: dict[str, Miss] = {}
    for miss in (miss for step in report.steps for miss in step.misses):
        if miss.rule not in closest or miss.matched > closest[miss.rule].matched:
            closest[miss.rule] = miss
    return sorted(closest.values(), key=lambda miss: -miss.matched)


def refuse_contradictions(precision: str, calibration: Any, **given: Any) -> None:
    """What would be ignored in silence, as the command does."""
    useless = [name for name, value in given.items() if value is not None]
    if precision in ("float32", "fp32", "f32") and useless:
        raise errors.UsageError(f"{', '.join(useless)}: for low precision; add precision='int8' or another")
    if calibration is not None and precision not in ("int8", "int4-weights", "auto"):
        raise errors.UsageError(f"calibration: for precision 'int8', 'int4-weights' and 'auto', not for '{precision}'")


def _finished(run: Run, model: Any, output: Union[None, str, os.PathLike[str]], limits: Mapping[str, Any], external_data: Optional[str]) -> Result:
    holder, model = model, unwrapped(model)
    kind = kind_of(model)
    folder = Folder()
    form = kind.arrive(model, folder.path)
    is_file = isinstance(model, (str, os.PathLike))
    if output is not None and not is_file:
        refuse_unwritable(output)
    target = None
    if isinstance(form, pathlib.Path):
        target = folder.path / (form.name if is_file else "optimized.onnx")
        if is_file and output is not None:
            target = pathlib.Path(os.fspath(output))
    done, text = run.run(form, target, (folder, holder))  # until nothing needs their files
    result = Result(kind.leave(done, model), Report.from_json(text), done, folder, limits)
    if output is not None and not is_file:
        result.save(output, external_data=external_data)
    return result
