# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What scripts/install-python and scripts/install-torch have in common; to be sourced by bash, in the repository.
#   make_environment FOLDER [PYTHON]   $python, a Python of its own, with what builds ccom's extensions
#   step WHAT COMMAND...               says what is done, and how long it took
#   pip_install WORDS...               shows its progress on a terminal
#   install_ccom [WORDS...]            the package ccom, from build/release where that is, else from the sources
export PATH=/usr/bin:$PATH
quiet=(--quiet)
verbose=()
if [ -t 1 ]; then quiet=() verbose=(--verbose); fi

step() {
  local started=$SECONDS
  echo "ccom: $1"
  shift
  "$@"
  echo "ccom: done in $((SECONDS - started)) s"
}

pip_install() { "$python" -m pip install --disable-pip-version-check "${quiet[@]}" "$@"; }

make_environment() {
  scripts/install-dependencies --python
  [ -x "$1/bin/python" ] || "${2:-/usr/bin/python3}" -m venv "$1"
  python=$1/bin/python
  step "what builds the extension: scikit-build-core, ninja, nanobind (1 MB)" \
    pip_install "scikit-build-core>=0.10" ninja "nanobind>=2.5"
}

install_ccom() {
  # As cmake/CcomCompiling.cmake sets it for the libraries.
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache} CCACHE_BASEDIR=${CCACHE_BASEDIR-$PWD}
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros,include_file_mtime,include_file_ctime}
  fi
  pip_install "${verbose[@]}" --no-build-isolation --no-deps --force-reinstall "$@" ./python
}
