"""A small server for a laptop and for tests that speaks the API of TF Serving over SavedModels.

    with Server("models/babi", port=8500, rest_port=8501) as server:
        server.wait()

It loads models with TensorFlow and answers gRPC (`PredictionService.Predict` and
`GetModelMetadata`, `ModelService.GetModelStatus`) and REST (`/v1/models/...`). What it is made of,
from the inside out: `lemn_tf.export.loaded` runs one version of one model, `batching` joins
concurrent requests, `catalog` follows the version folders, `grpc_api` and `rest_api` are the two
front doors.
"""

from lemn_tf.export.server.app import Server
from lemn_tf.export.server.catalog import Catalog

__all__ = ["Catalog", "Server"]
