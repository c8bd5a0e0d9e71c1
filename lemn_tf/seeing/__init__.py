"""Shows what a memory remembers: traces and reasons, regret, figures, boards and reports.

reader = lemn_tf.load("babi-noisy-st-lemn-5")
trace = seeing.find("babi-noisy-st-lemn-5", "noisy_test.txt").traces([3])[0]
print(trace.why(17))                             # why item 17 left
seeing.life_lines(trace)                         # a figure, for a notebook
seeing.save(trace, "trace.jsonl")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemn_tf.seeing.budgets import errors_by_size
    from lemn_tf.seeing.figures import budget_curve, learning_curve, life_lines, memory_table
    from lemn_tf.seeing.files import read, save
    from lemn_tf.seeing.finding import find
    from lemn_tf.seeing.recording import as_trace, examine, examine_model, traces
    from lemn_tf.seeing.regret import judge
    from lemn_tf.seeing.subjects import Subject
    from lemn_tf.seeing.subjects_own import OwnSubject
    from lemn_tf.seeing.trace import Asked, Step, Trace, why
    from lemn_tf.seeing.watch import Evicted, FileSink, Watch

__all__ = [
    "Asked",
    "Evicted",
    "FileSink",
    "OwnSubject",
    "Step",
    "Subject",
    "Trace",
    "Watch",
    "as_trace",
    "budget_curve",
    "errors_by_size",
    "examine",
    "examine_model",
    "find",
    "judge",
    "learning_curve",
    "life_lines",
    "memory_table",
    "read",
    "save",
    "traces",
    "why",
]

_NAMES = {
    "Asked": "trace",
    "Evicted": "watch",
    "FileSink": "watch",
    "OwnSubject": "subjects_own",
    "Step": "trace",
    "Subject": "subjects",
    "Trace": "trace",
    "Watch": "watch",
    "as_trace": "recording",
    "budget_curve": "figures",
    "errors_by_size": "budgets",
    "examine": "recording",
    "examine_model": "recording",
    "find": "finding",
    "judge": "regret",
    "learning_curve": "figures",
    "life_lines": "figures",
    "memory_table": "figures",
    "read": "files",
    "save": "files",
    "traces": "recording",
    "why": "trace",
}
"""The public names, with the module of each: a module is loaded when a name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
