"""Runs a model in ONNX Runtime as a JSON text says, in a process of its own: cuda_session.py '{"model": ...}'. Prints one line
of JSON: where the nodes were placed, and what went wrong; outputs go into a file, bfloat16 as the bits in uint16. For a list of
such texts, one line for each."""
import ctypes
import json
import sys
import threading

import numpy as np
import onnxruntime as ort

BFLOAT16 = 16


def to_value(array):
    """uint16 stands for bfloat16, which numpy does not have."""
    if array.dtype == np.uint16:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def to_array(value):
    if value.element_type() != BFLOAT16:
        return value.numpy()
    shape = value.shape()
    raw = (ctypes.c_uint16 * int(np.prod(shape))).from_address(value.data_ptr())
    return np.array(raw, np.uint16).reshape(shape)


def make(wanted):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in wanted.get("config", {}).items():
        options.add_session_config_entry(key, value)
    if wanted.get("save"):  # the graph that is left, its weights beside it
        options.optimized_model_filepath = wanted["save"]
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", wanted["save"].split("/")[-1] + ".data")
    if wanted.get("plugin"):
        options.register_custom_ops_library(wanted["plugin"])
    providers = [tuple(one) if isinstance(one, list) else one for one in wanted.get("providers", ["CUDAExecutionProvider", "CPUExecutionProvider"])]
    return ort.InferenceSession(wanted["model"], options, providers=providers)


def placed(session):
    """{provider: [operators]}"""
    found = {}
    for part in session.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, []).extend(f"{node.domain}::{node.op_type}" for node in part.get_nodes())
    return found


def run(session, feeds):
    values = {name: to_value(array) for name, array in feeds.items()}
    return [to_array(value) for value in session.run_with_ort_values(None, values)]


def at_once(sessions, feeds, times):
    """Every session in two threads; true when they all agree."""
    expected, wrong = run(sessions[0], feeds), []

    def work(session):
        for _ in range(times):
            try:
                if not all(np.array_equal(a, b) for a, b in zip(run(session, feeds), expected, strict=True)):
                    wrong.append("another result")
            except Exception as error:  # noqa: BLE001
                wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(session,)) for session in sessions for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return wrong


def main():
    wanted = json.loads(sys.argv[1])
    for one in wanted if isinstance(wanted, list) else [wanted]:
        print(json.dumps(answer(one)), flush=True)


def answer(wanted):
    said = {}
    try:
        sessions = [make(wanted) for _ in range(wanted.get("sessions", 1))]
        said["placed"] = placed(sessions[0])
        for file in wanted.get("refused", []):  # these runs fail, each with its message; the session goes on
            try:
                run(sessions[0], dict(np.load(file)))
            except Exception as error:  # noqa: BLE001
                said.setdefault("messages", []).append(str(error))
        if "feeds" in wanted:
            feeds = dict(np.load(wanted["feeds"]))
            np.savez(wanted["out"], *run(sessions[0], feeds))
            said["wrong"] = at_once(sessions, feeds, wanted.get("times", 0))
    except Exception as error:  # noqa: BLE001
        said["error"] = str(error)
    return said


if __name__ == "__main__":
    main()
