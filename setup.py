"""Packaging of lemn_tf; see BUILD.md for how the environment is built."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

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
        "lemn_tf": ["py.typed", "presets/*.keras", "presets/*.npz"],
        "lemn_tf.export": ["serving/*", "serving/kubernetes/*"],
    },
    install_requires=[
        "tensorflow-cpu==2.21.*",
        "keras>=3.15,<4",
        "numpy>=2,<2.4",
        "tensorflow-text==2.21.*",
        "rich>=13",
    ],
    extras_require={
        # tf-agents pins old versions of its own dependencies: see BUILD.md before using this.
        "agents": ["tf-agents==0.19.0", "tf-keras==2.21.*", "tensorflow-probability==0.25.*"],
        "serving": [
            "grpcio",
            "requests",
            "tensorflow-serving-api==2.21.*",
            "uvicorn",
        ],
        "mazes": ["gymnasium>=1.1,<2", "numba>=0.61"],
    },
    entry_points={"console_scripts": ["lemn=lemn_tf.cli:main"]},
)
