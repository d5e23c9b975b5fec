"""8 bits on networks trained here on real handwriting: the answers stay right on digits that calibration has not seen."""
import pathlib
import sys

import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "accuracy"))
from bench import Bench  # noqa: E402
from task_digits import Digits  # noqa: E402
from variants import ModelFlow  # noqa: E402


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    return Bench(Digits(folder, share=0.5), folder, threads=1)


def test_the_networks_learn(digits):
    # Of a thousand examples a transformer learns about 94 %, whatever the rate; guessing gives 10 %.
    assert min(digits.values.values()) > 90, digits.values


@pytest.mark.parametrize("precision", ["int8", "int8-dynamic", "auto"])
def test_top_1_stays(digits, precision):
    row, = digits.rows(ModelFlow(precision, BUILD, ["--no-measure"]), each=False)  # not only where it is faster here
    assert row["values"], row["note"]
    assert "in 8 bits" in row["note"]
    assert all(row["holds"].values()), (digits.values, row["values"])
