"""A server's REST API. Needs `requests`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import requests

from lemn_tf.export import json_tensors
from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.tensors import Arrays, Spec
from lemn_tf.export.transport.base import Interface, only

_CODES = {code.http: code for code in reversed(Code)} | {
    400: Code.INVALID_ARGUMENT,
    413: Code.INVALID_ARGUMENT,
    502: Code.UNAVAILABLE,
}


class Rest:
    """A server's REST API.

    Args:
        base: e.g. `http://127.0.0.1:8501`.
        name: of the model.
        timeout: seconds for each request.
    """

    def __init__(self, base: str, name: str | None, timeout: float):
        self.base, self.name, self.timeout = base, name, timeout
        self._session, self._model = requests.Session(), ""
        self._interfaces: dict[str, Interface] = {}

    def describe(self, version: int | None = None) -> tuple[int, dict[str, Interface]]:
        name = self.name or self._only_model()
        asked = "" if version is None else f"/versions/{version}"
        document = self._ask("GET", f"/v1/models/{name}{asked}/metadata")
        version = int(document["model_spec"]["version"])
        signatures = document["metadata"]["signature_def"]["signature_def"]
        self._interfaces = {
            key: Interface(_specs(definition["inputs"]), _specs(definition["outputs"]))
            for key, definition in signatures.items()
            if not key.startswith("__")
        }
        self._model = f"/v1/models/{name}/versions/{version}"
        return version, self._interfaces

    def _only_model(self) -> str:
        try:
            names = self._ask("GET", "/").get("models", [])
        except ServingError as error:
            if error.code is Code.UNAVAILABLE:
                raise
            names = []
        return only(names, f"{self.base}/v1/models/NAME")

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        body = json_tensors.request(arrays, signature)
        outputs = self._ask("POST", f"{self._model}:predict", body)["outputs"]
        specs = self._interfaces[signature].outputs
        if len(specs) == 1:
            outputs = {next(iter(specs)): outputs}
        return {name: json_tensors.array(outputs[name], spec) for name, spec in specs.items()}

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} if body else None
        try:
            response = self._session.request(
                method, self.base + path, data=body, headers=headers, timeout=self.timeout
            )
        except requests.Timeout as error:
            raise ServingError(Code.DEADLINE_EXCEEDED, f"{self.base}: {error}") from error
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise ServingError(Code.UNAVAILABLE, f"{self.base}: {error}") from error
        try:
            document = response.json()
        except requests.JSONDecodeError:
            document = {"error": f"expected JSON; got {response.text[:200]!r}"}
        if response.status_code != 200 or "error" in document:
            code = _CODES.get(response.status_code, Code.UNKNOWN)
            raise ServingError(code, str(document.get("error", response.reason)))
        return document

    def close(self) -> None:
        self._session.close()


def _specs(infos: Mapping[str, Any]) -> dict[str, Spec]:
    return {name: Spec.from_json(name, info) for name, info in infos.items()}
