# libmodelflow_ort_cuda.so: the code that runs on a GPU, where there is a compiler for it (tests/cuda builds it for the
# host as well).
# Code of 7.5, 8.0 (which 8.6 and 8.9 run) and 9.0, and PTX for what comes next. "75-real;80-real;86-real;89-real;90-real;
# 100-real;120" has code of its own for every device and compiles twice as long.
set(MODELFLOW_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING
  "Compute capabilities that the CUDA library has code for")
if(NOT MODELFLOW_CUDA_ARCHITECTURES MATCHES "^([0-9]+[af]?(-real|-virtual)?;)*[0-9]+[af]?(-real|-virtual)?$")
  message(FATAL_ERROR "MODELFLOW_CUDA_ARCHITECTURES is \"${MODELFLOW_CUDA_ARCHITECTURES}\": name compute capabilities, as 75-real;80-real;90")
endif()

# What both sides of the table lay out alike: a library of kernels that was built of anything else is refused.
file(GLOB interface CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/cuda/launches/*.h)
list(APPEND interface ${CMAKE_SOURCE_DIR}/backends/cuda/launches.h ${CMAKE_SOURCE_DIR}/backends/cuda/library.h
  ${CMAKE_SOURCE_DIR}/backends/activation.h ${CMAKE_SOURCE_DIR}/backends/pointwise_op.h ${CMAKE_SOURCE_DIR}/backends/taps.h)
list(SORT interface)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${interface})
set(hashes)
foreach(header ${interface})
  file(SHA256 ${header} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hashes "${hashes}")
string(SUBSTRING ${hashes} 0 8 hashes)
set(MODELFLOW_CUDA_INTERFACE MODELFLOW_CUDA_INTERFACE=0x${hashes}U)
set_source_files_properties(${CMAKE_SOURCE_DIR}/backends/cuda/library.cpp PROPERTIES COMPILE_DEFINITIONS ${MODELFLOW_CUDA_INTERFACE})

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
    string(REPLACE ";" "+" code "${MODELFLOW_CUDA_ARCHITECTURES}")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/backends/cuda/code/library.cu PROPERTIES COMPILE_DEFINITIONS
      "${MODELFLOW_CUDA_INTERFACE};MODELFLOW_CUDA_CODE=\"${code}\"")
    set_target_properties(modelflow_ort_cuda PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
    target_link_options(modelflow_ort_cuda PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL -static-libgcc)
  else()
    message(STATUS "No CUDA compiler (tools/setup --cuda brings one): GPU code is built for the emulator alone, and libmodelflow_ort_cuda.so is not")
  endif()
endif()
