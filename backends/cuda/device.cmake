# libmodelflow_ort_cuda.so: the code that runs on a GPU, where there is a compiler for it (tests/cuda builds it for the
# host as well).
# Code of 7.5, 8.0 (which 8.6 and 8.9 run) and 9.0, and PTX for what comes next. "75-real;80-real;86-real;89-real;90-real;
# 100-real;120" has code of its own for every device and compiles twice as long.
set(MODELFLOW_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING
  "Compute capabilities that the CUDA library has code for")
option(MODELFLOW_CUDA "Build libmodelflow_ort_cuda.so where there is a CUDA compiler" ON)
if(MODELFLOW_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${MODELFLOW_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  find_program(MODELFLOW_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})  # an installed one first, then that of tools/setup --cuda
    if(MODELFLOW_NVCC)
      set(CMAKE_CUDA_COMPILER ${MODELFLOW_NVCC})
    elseif(MODELFLOW_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${MODELFLOW_CUDA_COMPILER})
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/cuda/code/*.cu)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that of nvcc 13
    add_library(modelflow_ort_cuda SHARED ${device_sources})
    target_include_directories(modelflow_ort_cuda PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
    target_compile_options(modelflow_ort_cuda PRIVATE -O3 -Xfatbin=-compress-all --expt-relaxed-constexpr
      $<$<BOOL:${MODELFLOW_WERROR}>:-Werror=all-warnings>)
    set_target_properties(modelflow_ort_cuda PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
    target_link_options(modelflow_ort_cuda PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL -static-libgcc)
  else()
    message(STATUS "No CUDA compiler (tools/setup --cuda brings one): GPU code is built for the emulator alone, and libmodelflow_ort_cuda.so is not")
  endif()
endif()
