/* The C interface, for languages that call C. Every call that can fail returns 0 or the number of an ErrorKind (the
 * exit codes of the command line) and, when `error` is not null, a one-line message to be freed with modelflow_free.
 * Handles and strings belong to the caller. Nothing throws; calls on different handles may run at the same time. Of one
 * handle only modelflow_cancel may be called while a run uses it. Callbacks are called on the thread of the run, one at
 * a time; what they get is valid until they return, and they and their `user` must stay valid until the run is over.
 *
 *   modelflow_options* options = modelflow_options_create();
 *   char* error = NULL;
 *   if (modelflow_options_set(options, "level", "O2", &error) ||
 *       modelflow_optimize_file("model.onnx", "fast.onnx", options, NULL, &error))
 *     fprintf(stderr, "%s\n", error);
 *   modelflow_free(error);
 *   modelflow_options_free(options);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct modelflow_options modelflow_options;

/* What a run returns that was cancelled: the exit code of a command that was interrupted. */
#define MODELFLOW_CANCELLED 130

/* "0.1.0"; static. */
const char* modelflow_version(void);

/* Null without memory, and where $MODELFLOW_MAX_ISA names no instruction set. */
modelflow_options* modelflow_options_create(void);
void modelflow_options_free(modelflow_options* options);
/* Keys: level (O0, O1, O2), target (cpu, cpu:avx512_vnni, ...), measure (0, 1), profile (0, 1), verify (0, 1),
 * threads (a number), tolerance, max_seconds, verify_seconds (numbers), max_memory ("8G"), timeout (seconds),
 * max_nodes, max_depth (numbers), disable and enable (a stage, pass or rule, and what of it stays; may be set again),
 * input_shape ("x:1,3,224,224"; may be set again), precision (float32, bf16, int8, int8-dynamic, ...), observer (auto,
 * minmax, average, percentile, entropy, mse), calibration and inputs (a folder of .npz files, or one; for int8, and for
 * verifying and timing), metric (cosine, l2, top1), max_drop (a number, per cent), reproducer (a folder for the
 * smallest model and inputs that show what verification found wrong), bind ("sr=16000", or an .npz file; may be set
 * again), output and drop_output (a name; may be set again), custom_ops (a library of custom operators that the model
 * needs; may be set again), external_data (auto, always, never: weights in a file beside the one that is
 * written). Unknown keys and values are ErrorKind usage. */
int modelflow_options_set(modelflow_options* options, const char* key, const char* value, char** error);

/* One set of inputs under construction; valid during the callback only. */
typedef struct modelflow_sample modelflow_sample;
/* Copies one input into the sample. `dtype` is a number of ONNX TensorProto.DataType (1: float32, 7: int64). */
int modelflow_sample_set(modelflow_sample* sample, const char* input, int dtype, const int64_t* dims, size_t rank,
                         const void* data, char** error);
/* The same for an input of texts (dtype 8): as many UTF-8 strings as `dims` ask for, each ended by a zero. */
int modelflow_sample_set_strings(modelflow_sample* sample, const char* input, const int64_t* dims, size_t rank,
                                 const char* const* data, char** error);
/* The name of the model's input at `position`, those with a default value left out; null behind the last. */
const char* modelflow_sample_input(const modelflow_sample* sample, size_t position);
/* Called with indices that rise, not always by one, several times over from the beginning: sets every input of that
 * sample, the same each time, and returns 1; returns 0 behind the last one and anything else to give up (ErrorKind
 * usage). */
typedef int (*modelflow_next_sample)(void* user, size_t index, modelflow_sample* sample);
/* Calibration data for precision int8. */
int modelflow_options_set_calibration(modelflow_options* options, modelflow_next_sample next, void* user, char** error);
/* Inputs for verifying and timing: asked for once, at the beginning of the run, and held in memory. */
int modelflow_options_set_inputs(modelflow_options* options, modelflow_next_sample next, void* user, char** error);

/* Called at every step with its name and how much of it is done, 0 to 1: returns 0 to go on, anything else to cancel.
 */
typedef int (*modelflow_progress)(void* user, const char* step, double done);
int modelflow_options_set_progress(modelflow_options* options, modelflow_progress progress, void* user, char** error);

/* A model to be scored; valid during the callback only. */
typedef struct modelflow_candidate modelflow_candidate;
/* Writes it with its weights, so that a runtime with the plugin loads it. */
int modelflow_candidate_save(const modelflow_candidate* candidate, const char* file, char** error);
/* Sets the caller's own figure of merit, higher is better, and returns 0; anything else to give up (ErrorKind usage).
 * max_drop then bounds what of it a lower precision may lose, in per cent, in place of the metric. */
typedef int (*modelflow_score)(void* user, const modelflow_candidate* candidate, double* score);
int modelflow_options_set_score(modelflow_options* options, modelflow_score score, void* user, char** error);

/* Ends the run that uses these options at its next step; it returns MODELFLOW_CANCELLED, as every later run with them
 * does, and no callback begins any more. May be called from any thread, from callbacks and from signal handlers. */
void modelflow_cancel(modelflow_options* options);

/* `options` may be null. `report`, when not null, receives the JSON report. */
int modelflow_optimize_file(const char* input, const char* output, const modelflow_options* options, char** report,
                            char** error);
/* From and to the bytes of a ModelProto; external data is refused. */
int modelflow_optimize_bytes(const void* input, size_t size, const modelflow_options* options, void** output,
                             size_t* output_size, char** report, char** error);

/* Several models as one, written to `output`. `names`: what the edges call them; null: the stems of their files.
 * `edges`: "encoder.hidden=decoder.memory", as `optimize --map` has them; none: what has the same name. The whole is
 * run beside its parts: ErrorKind verification where they differ, or where only the parts run. `options` may be null;
 * of them count verify, inputs, input_shape, threads, custom_ops, external_data, the limits, progress and cancelling.
 * `signature`, when not null, receives what goes where, a line each, and notes. */
int modelflow_merge_files(const char* const* files, const char* const* names, size_t count, const char* const* edges,
                          size_t edge_count, const char* output, const modelflow_options* options, char** signature,
                          char** error);

/* Local functions, which our fused ops are, written out as the standard ops that they stand for: for runtimes without
 * the plugin that do not expand functions. Those of another opset than the model's stay. `options` may be null; of them
 * count external_data, max_nodes and max_depth. */
int modelflow_inline_file(const char* input, const char* output, const modelflow_options* options, char** error);

/* A model of features of sound, written to `output`: `features` as `optimize --audio-front-end` has them. */
int modelflow_audio_front_end(const char* features, const char* output, char** error);

/* A model of what is done to pictures, written to `output`: `features` as `optimize --image-front-end` has them. */
int modelflow_image_front_end(const char* features, const char* output, char** error);

/* The page for browsers of a report: one file that needs nothing else. */
int modelflow_report_page(const char* report, char** page, char** error);

void modelflow_free(void* memory);

#ifdef __cplusplus
}
#endif
