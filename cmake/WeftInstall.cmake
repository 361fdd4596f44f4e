# cmake --install: what a user needs, in the order in which weft(1) looks for it. bin and lib/weft stand side by side, so that they
# can also be moved together, whatever the prefix is.
include(GNUInstallDirs)

set(weft_private lib/weft)   # not lib/x86_64-linux-gnu: no program finds the libraries unless it is told to
install(TARGETS weft RUNTIME DESTINATION bin)
install(TARGETS ibverbs rdmacm weft-sdp LIBRARY DESTINATION ${weft_private})
foreach(name ibverbs rdmacm)
  install(FILES ${CMAKE_BINARY_DIR}/lib/weft/lib${name}.so DESTINATION ${weft_private})
endforeach()
install(DIRECTORY tools/report/ DESTINATION ${weft_private}/report FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(DIRECTORY packaging/wireshark DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
