# SPDX-License-Identifier: Apache-2.0
#
# Runs ccom-topo and checks what it prints and its exit code: 0 for an answer on stdout, 3 and a reason on stderr otherwise.
function(expect code pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CCOM_TOPOLOGY --unset=CCOM_HOSTID --unset=CCOM_SYSFS_ROOT
                          ${TOOL} ${ARGN} RESULT_VARIABLE got OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 30)
  if(code EQUAL 0)
    set(text "${out}")
  else()
    set(text "${err}")
  endif()
  if(NOT got EQUAL code OR NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "ccom-topo ${ARGN}: exit code ${got}, expected ${code} and \"${pattern}\"\n${out}\n${err}")
  endif()
endfunction()

expect(0 "^host .*cpus? for this job")
expect(0 "^{\"id\":" --json)
expect(0 "12 -- 13 -- 14 -- 15" trn1.32xlarge)
expect(0 "^{\"name\":\"ring:4\",\"shape\":\"ring\"" ring:4 --json)
expect(0 "trn2u.48xlarge" --list)
expect(0 "ccom-topo" --help)
expect(3 "no such preset; there are .*trn1.32xlarge" trn9)
expect(3 "one host" trn2-ultraserver)
expect(3 "missing.json" missing.json)
expect(3 "not a folder" --root ${CMAKE_CURRENT_LIST_FILE})
expect(3 "excludes" ring:4 --root /)
expect(3 "not expected" --frobnicate)
