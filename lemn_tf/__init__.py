"""lemn_tf: a bounded memory over an endless stream that learns what to remember.

Nothing heavy is imported before it is used: a client of a served memory needs no TensorFlow. The
first use of a name below imports the library as a whole, and with it registers its classes with
Keras. So does `import lemn_tf` itself if Keras or TensorFlow is there already:

    import keras
    import lemn_tf                                  # registers EpisodicMemory and the others
    model = keras.saving.load_model("model.keras")  # or lemn_tf.load("model.keras"), in any order
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemn_tf import callbacks, memory, readers, retention, seeing
    from lemn_tf.episode import Episode
    from lemn_tf.evaluation import compare
    from lemn_tf.layer import EpisodicMemory
    from lemn_tf.learning import ActorCritic, Hindsight, MemoryModel, Objective, Rollout
    from lemn_tf.live import LiveReader
    from lemn_tf.memory import MemoryState
    from lemn_tf.model import StreamReader
    from lemn_tf.retention import Decision, RetentionPolicy
    from lemn_tf.runs import Preset, from_preset, load, presets
    from lemn_tf.text import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "ActorCritic",
    "Decision",
    "Episode",
    "EpisodicMemory",
    "Hindsight",
    "LiveReader",
    "MemoryModel",
    "MemoryState",
    "Objective",
    "Preset",
    "RetentionPolicy",
    "Rollout",
    "StreamReader",
    "Vocabulary",
    "callbacks",
    "compare",
    "from_preset",
    "load",
    "memory",
    "presets",
    "readers",
    "retention",
    "seeing",
]

_MODULES = ("callbacks", "memory", "readers", "retention")
"""The public names that are modules."""
_LATER = ("seeing",)
"""Those that are loaded only when used; reading needs no pictures."""
_NAMES = {
    "ActorCritic": "learning",
    "Decision": "retention",
    "Episode": "episode",
    "EpisodicMemory": "layer",
    "Hindsight": "learning",
    "LiveReader": "live",
    "MemoryModel": "learning",
    "MemoryState": "memory",
    "Objective": "learning",
    "Preset": "runs",
    "RetentionPolicy": "retention",
    "Rollout": "learning",
    "StreamReader": "model",
    "Vocabulary": "text",
    "compare": "evaluation",
    "from_preset": "runs",
    "load": "runs",
    "presets": "runs",
}
"""The other public names, with the module of each."""


def _load_all() -> None:
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
    for name, module in _NAMES.items():  # the names too: a module may itself load them on use
        getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __getattr__(name: str) -> Any:
    if name in (*_MODULES, *_LATER):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _load_all()
    return getattr(sys.modules[f"{__name__}.{_NAMES[name]}"], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "keras" in sys.modules or "tensorflow" in sys.modules:
    _load_all()
