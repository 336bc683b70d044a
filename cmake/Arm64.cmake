# SPDX-License-Identifier: Apache-2.0
#
# Toolchain file: Debian's cross compiler for arm64, libraries and headers from a sysroot that scripts/build-arm64
# makes, programs that run while building (protoc, its plugin for gRPC, help2man) from this machine. Programs of the
# build run under qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(CCOM_ARM64_SYSROOT "$ENV{HOME}/.cache/ccom/arm64/sysroot" CACHE PATH "Debian's packages for arm64, unpacked")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CCOM_ARM64_SYSROOT)
set(CMAKE_SYSROOT ${CCOM_ARM64_SYSROOT})
add_compile_options(-ffile-prefix-map=${CMAKE_SYSROOT}=)  # Boost's headers put their names into the library
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# All features that it can emulate, SVE among them.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT} -cpu max)
