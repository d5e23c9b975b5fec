/* The same from C: embed_c model.onnx fast.onnx */
#include <modelflow/c_api.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char* error = NULL;
  modelflow_options* options = modelflow_options_create();
  int code = modelflow_options_set(options, "measure", "0", &error);
  if (code == 0) code = modelflow_optimize_file(argv[1], argv[2], options, NULL, &error);
  if (code != 0) fprintf(stderr, "%s\n", error);
  modelflow_free(error);
  modelflow_options_free(options);
  return code;
}
