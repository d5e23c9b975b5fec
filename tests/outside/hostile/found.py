"""What fuzzing found once (tests/fuzz_targets/found), as models that are optimized: refused, unless they are named here."""
import pathlib

from hostile.case import Case

FOUND = pathlib.Path(__file__).resolve().parents[2] / "fuzz_targets" / "found"
TAKEN = ("unknown_fields_of_an_attribute.onnx",
         # ONNX Runtime does not run these; rules must leave them alone.
         "attribute_of_no_graphs.onnx", "past_without_heads.onnx", "scalar_bias_of_parts.onnx")

# Verification tries all sizes that it knows on what ONNX Runtime runs with none: a second.
CASES = {f"found: {path.name}": Case(lambda folders, path=path: path.read_bytes(), codes=(0,) if path.name in TAKEN else (3,),
                                     seconds=2 if path.name in TAKEN else 1)
         for path in sorted(FOUND.glob("*/*.onnx"))}
