"""The public names of the package: all there, and none loaded before it is used."""

import subprocess
import sys

import pytest

import lemn_tf


def test_every_public_name_is_there():
    assert set(lemn_tf.__all__) <= set(dir(lemn_tf))
    assert all(getattr(lemn_tf, name) is not None for name in lemn_tf.__all__)
    assert sorted([*lemn_tf._NAMES, *lemn_tf._MODULES, *lemn_tf._LATER]) == lemn_tf.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = lemn_tf.nonsense


@pytest.mark.parametrize(
    "script",
    [
        "import lemn_tf",
        "import lemn_tf.cli",
        "from lemn_tf.export import MemoryClient, ServingError",
    ],
)
def test_light(script):
    check = "import sys; heavy = {'tensorflow', 'keras', 'uvicorn'} & set(sys.modules)"
    subprocess.run(
        [sys.executable, "-c", f"{script}; {check}; assert not heavy, heavy"], check=True
    )


MORE_ORDERS = (
    "import tensorflow, lemn_tf, keras; keras.saving.load_model(PATH, compile=False)",
    "import lemn_tf; lemn_tf.load(PATH)",
)


@pytest.mark.parametrize(
    "script",
    [
        "import keras, lemn_tf; keras.saving.load_model(PATH, compile=False)",
        "from lemn_tf import Episode; import keras; keras.saving.load_model(PATH, compile=False)",
        *(pytest.param(one, marks=pytest.mark.slow) for one in MORE_ORDERS),
    ],
)
def test_a_saved_model_finds_its_classes(script):
    from lemn_tf import runs

    path = sorted(runs.PRESETS.glob("babi-*.keras"))[0]
    script = script.replace("PATH", repr(str(path)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
