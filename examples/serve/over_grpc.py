"""The models of server.py over gRPC (`--grpc-port`), in the protocol that Triton and KServe speak: what tritonclient.grpc asks for.

Needs grpcio and tritonclient, whose package has the protocol's messages."""
import concurrent.futures

import grpc
import numpy as np
from models import NAMES, TYPES, Refused, counted
from tritonclient.grpc import service_pb2 as wire
from tritonclient.grpc import service_pb2_grpc

FIELDS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
          "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
          "FP32": "fp32_contents", "FP64": "fp64_contents"}  # of numbers that do not come as bytes; FP16 always does


def tensors_of(request):
    feeds, raw = {}, list(request.raw_input_contents)
    for item in request.inputs:
        kind = TYPES[item.datatype]
        flat = np.frombuffer(raw.pop(0), kind) if request.raw_input_contents else np.asarray(getattr(item.contents, FIELDS[item.datatype]), kind)
        feeds[item.name] = flat.reshape(item.shape)
    return feeds


class Service(service_pb2_grpc.GRPCInferenceServiceServicer):
    def __init__(self, models):
        self._models = models

    def _model(self, name, context):
        if name not in self._models:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model '{name}'")
        return self._models[name]

    def ServerLive(self, request, context):
        return wire.ServerLiveResponse(live=True)

    def ServerReady(self, request, context):
        return wire.ServerReadyResponse(ready=True)

    def ModelReady(self, request, context):
        return wire.ModelReadyResponse(ready=request.name in self._models)

    def ModelMetadata(self, request, context):
        return wire.ModelMetadataResponse(**self._model(request.name, context).described())

    def ModelInfer(self, request, context):
        model = self._model(request.model_name, context)
        try:
            with counted(model):
                found = model.run(self._feeds(request), [item.name for item in request.outputs])
        except Refused as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        answer = wire.ModelInferResponse(model_name=model.name, model_version="1", id=request.id)
        for name, value in found:
            answer.outputs.add(name=name, datatype=NAMES[value.dtype], shape=value.shape)
            answer.raw_output_contents.append(value.tobytes())
        return answer

    @staticmethod
    def _feeds(request):
        try:
            return tensors_of(request)
        except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise Refused(f"no request for a model: {type(error).__name__}: {error}") from error


def serve(models, address, most_at_once):
    """A running server; `stop(seconds).wait()` answers what has arrived, and ends it. OSError where the address is taken."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(most_at_once), options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)])
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(models), server)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(str(error)) from error
    server.start()
    return server
