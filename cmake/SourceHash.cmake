# SPDX-License-Identifier: Apache-2.0
#
# cmake -DROOT=DIR -DFOLDERS=A;B -DOUTPUT=FILE -P SourceHash.cmake: a header with the hash of all files in these folders
# of DIR.
list(TRANSFORM FOLDERS PREPEND ${ROOT}/)
list(TRANSFORM FOLDERS APPEND /*)
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${ROOT} ${FOLDERS})
list(SORT files)
set(all)
foreach(file IN LISTS files)
  file(SHA256 ${ROOT}/${file} hash)
  string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 12 hash)
file(WRITE ${OUTPUT} "#define CCOM_SOURCE_HASH \"${hash}\"\n")
