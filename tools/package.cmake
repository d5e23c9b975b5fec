# find_package(ModelFlow): ModelFlow::modelflow to link, ModelFlow::plugin to register in ONNX Runtime.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set_target_properties(modelflow_ort PROPERTIES EXPORT_NAME plugin)
install(TARGETS modelflow modelflow_ort optimize modelflow-bench EXPORT ModelFlowTargets)
add_custom_target(installed)  # what tools/build builds
add_dependencies(installed modelflow modelflow_ort optimize modelflow-bench described)
if(TARGET modelflow_ort_cuda)  # beside the plugin, which opens it
  add_dependencies(installed modelflow_ort_cuda)
  install(TARGETS modelflow_ort_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endif()
install(DIRECTORY include/modelflow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ModelFlowTargets NAMESPACE ModelFlow:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ModelFlow FILE ModelFlowConfig.cmake)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ModelFlowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ModelFlowConfigVersion.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ModelFlow)

# pkg-config: modelflow to link; the variable `plugin` is the library to register. It says where it lies itself, so it can be moved.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/modelflow.pc @ONLY CONTENT [[
prefix=${pcfiledir}/../..
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
plugin=${libdir}/libmodelflow_ort.so

Name: modelflow
Description: Makes ONNX models faster on CPU without changing how they are deployed
Version: @PROJECT_VERSION@
Cflags: -I${includedir}
Libs: -L${libdir} -lmodelflow
]])
install(FILES ${CMAKE_BINARY_DIR}/modelflow.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/modelflow RENAME copyright)

# cpack in the build folder makes a Debian package. It needs no ONNX Runtime to be installed: the one of the process is taken.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME modelflow)
set(CPACK_PACKAGE_CONTACT "ModelFlow developers <modelflow@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "makes ONNX models faster on CPU without changing how they are deployed")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz) # as Debian packs its own: a fifth smaller than gzip, of kernels for eight GPU architectures above all
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
