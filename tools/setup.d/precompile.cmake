# Given to a dependency as CMAKE_PROJECT_INCLUDE. Reading the same large headers again takes a quarter to a half of what
# its sources take to compile: each target in PRECOMPILE ("target=header=header;...", headers below the source folder)
# reads them once.
function(precompile_shared_headers)
  foreach(entry IN LISTS PRECOMPILE)
    string(REPLACE "=" ";" headers "${entry}")
    list(POP_FRONT headers target)
    list(TRANSFORM headers PREPEND "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_SOURCE_DIR}/")
    list(TRANSFORM headers APPEND ">")
    target_precompile_headers(${target} PRIVATE ${headers})
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL precompile_shared_headers)
