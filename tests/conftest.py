"""Quiet start-up for the whole suite; must run before TensorFlow is imported."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
