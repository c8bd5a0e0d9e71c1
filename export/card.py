"""What is written beside a model: `lemn.json` for programs, `CARD.md` for people."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf

import lemn_tf
from lemn_tf.export.packed import Packing
from lemn_tf.export.servable import Servable, Specs
from lemn_tf.export.signatures import Signature
from lemn_tf.export.tensors import Arrays
from lemn_tf.export.warmup import as_json

FORMAT = "lemn_tf export, version 1"
"""First thing in `lemn.json`."""
_MOST_NUMBERS = 4096


def describe(
    servable: Servable,
    signatures: dict[str, Signature],
    outputs: dict[str, Specs],
    requests: dict[str, Arrays],
    *,
    name: str,
    version: str,
    description: str = "",
) -> dict[str, Any]:
    """Everything a caller needs to know, as JSON values.

    Args:
        servable: the model.
        signatures: its signatures.
        outputs: specs of what each gives.
        requests: an example for each.
        name: the model's name.
        version: its version, for TF Serving a number.
        description: a sentence about it.
    """
    policy = servable.memory.policy
    return {
        "format": FORMAT,
        "name": name,
        "version": version,
        "description": description,
        "fingerprint": servable.fingerprint,
        "policy": policy.name,
        "slots": servable.memory.slots,
        "attends": servable.memory.policy.listens,
        "state": memory_size(servable),
        **servable.facts,
        "made_with": {"lemn_tf": lemn_tf.__version__, "tensorflow": tf.__version__},
        "signatures": {
            key: {
                "about": signature.about,
                "inputs": _plain(signature.inputs),
                "outputs": _plain(outputs[key]),
                **_example(key, requests[key]),
            }
            for key, signature in signatures.items()
        },
    }


def _example(name: str, inputs: Arrays) -> dict[str, Any]:
    """A request as JSON, unless it is full of pictures: those are in the warm-up file only."""
    if sum(array.size for array in inputs.values()) > _MOST_NUMBERS:
        return {}
    return {"example": as_json(name, inputs)}


def memory_size(servable: Servable) -> dict[str, Any]:
    """How large the memory of one row is, in bytes, and at most in characters if packed."""
    packing = Packing.of(servable)
    numbers = packing.fixed - 4 * packing.texts
    size = {"names": list(servable.state), "bytes": numbers, "strings": packing.texts}
    limit = servable.facts.get("text_limit")
    if not packing.texts or limit is not None:
        text = 4 * (limit or 0) * packing.texts  # a character has up to four bytes
        size |= {"bytes_at_most": numbers + text, "packed_at_most": packing.length(text)}
    return size


def _plain(specs: Specs) -> dict[str, Any]:
    return {
        name: {"dtype": spec.dtype.name, "shape": [-1 if d is None else d for d in spec.shape]}
        for name, spec in specs.items()
    }


def card(facts: dict[str, Any]) -> str:
    """A short Markdown card of what `describe` returned."""
    state = facts["state"]
    limit = f", with its texts at most {state['bytes_at_most']:,}" if state["strings"] else ""
    acts = "act" in facts["signatures"]
    told = facts["signatures"]["initial_state_packed" if acts else "serving_default"]["example"]
    example = json.dumps(told, ensure_ascii=False)
    about = "An agent with a bounded memory" if acts else "A bounded memory over a stream that"
    about += "." if acts else " answers questions."
    done = " `action` is what to do, `probabilities` how likely each action was." if acts else ""
    rows = "\n".join(
        f"| `{name}` | {_columns(s['inputs'], state)} | {_columns(s['outputs'], state)} "
        f"| {s['about']} |"
        for name, s in facts["signatures"].items()
    )
    return f"""# {facts["name"]}, version {facts["version"]}

{facts["description"] or about}

{facts["slots"]} slots, policy `{facts["policy"]}`, fingerprint `{facts["fingerprint"]}`.
Made with lemn_tf {facts["made_with"]["lemn_tf"]}, TensorFlow {facts["made_with"]["tensorflow"]};
any TensorFlow runtime loads it.

The server keeps nothing: the memory goes in and comes out of every call. One memory has
{state["bytes"]:,} bytes of numbers{limit}. *state* below stands for
{", ".join(f"`{name}`" for name in state["names"])};
in the `_packed` signatures it is one string by the name of `state`, and `""` is a fresh memory.
JSON from JavaScript loses digits of `expiry` (64 bits): use the packed form there.

| signature | in | out | |
|---|---|---|---|
{rows}

Every tensor has the batch first. `evicted` is the id that left (-1: none), `slot` its place (N: the
item was not stored), `keep` the probability of keeping each of the N slots and the item.{done}

```
curl -d '{example}' http://HOST:8501/v1/models/{facts["name"]}:predict
```

All names, shapes and example requests: `assets.extra/lemn.json`.
"""


def _columns(specs: dict[str, Any], state: dict[str, Any]) -> str:
    whole = set(state["names"]) <= set(specs)
    names = ["*state*"] if whole else []
    for name, spec in specs.items():
        if not whole or name not in state["names"]:
            inner = ", ".join(
                "B" if i == 0 else "T" if d < 0 else str(d) for i, d in enumerate(spec["shape"])
            )
            names.append(f"`{name}` {spec['dtype']} [{inner}]")
    return ", ".join(names)
