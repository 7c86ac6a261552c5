# SPDX-License-Identifier: BSL-1.0
# Imported targets for the LibTorch inside a PyPI wheel: torch_wheel::torch_cpu, torch_wheel::c10 and, where the wheel has them, ::c10_cuda,
# ::torch_cuda, ::nccl, ::cudart. Made by hand, because the wheel's own find_package(Torch) asks for a CUDA toolkit of its version when it
# configures and puts the toolkit's NCCL, older than the one torch was built with, on the run path (tried with torch 2.15).
set(CANTLE_TORCH_VERSION 2.15.0)
set(CANTLE_TORCH_SITE_PACKAGES "" CACHE PATH "site-packages folder that holds torch (empty: the one in .venv)")

set(torch_site "${CANTLE_TORCH_SITE_PACKAGES}")
if(NOT torch_site)
    file(GLOB torch_site "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
    list(GET torch_site 0 torch_site)
endif()
if(NOT EXISTS "${torch_site}/torch/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch is not there: no torch/lib/libtorch_cpu.so in '${torch_site}'. Remedy: run ./dev build (it installs "
        "torch==${CANTLE_TORCH_VERSION} into .venv), set CANTLE_TORCH_SITE_PACKAGES, or configure with -DCANTLE_LIBTORCH=OFF.")
endif()
file(STRINGS "${torch_site}/torch/version.py" torch_version REGEX "^__version__")
if(NOT torch_version MATCHES "'${CANTLE_TORCH_VERSION}[+']")
    message(FATAL_ERROR "torch in '${torch_site}' has another version (${torch_version}) than ${CANTLE_TORCH_VERSION}, on whose dispatcher "
        "keys the capture relies. Remedy: rm -r .venv and run ./dev build.")
endif()

# torch_wheel_library(NAME FILE [INCLUDE...]): an imported shared library; its headers count as system headers.
function(torch_wheel_library name file)
    if(EXISTS "${file}")
        add_library(torch_wheel::${name} SHARED IMPORTED GLOBAL)
        set_target_properties(torch_wheel::${name} PROPERTIES IMPORTED_LOCATION "${file}" IMPORTED_NO_SONAME OFF)
        target_include_directories(torch_wheel::${name} INTERFACE ${ARGN})
    endif()
endfunction()

set(torch_include "${torch_site}/torch/include" "${torch_site}/torch/include/torch/csrc/api/include")
torch_wheel_library(c10 "${torch_site}/torch/lib/libc10.so" ${torch_include})
torch_wheel_library(torch_cpu "${torch_site}/torch/lib/libtorch_cpu.so" ${torch_include})
torch_wheel_library(torch_python "${torch_site}/torch/lib/libtorch_python.so" ${torch_include})
torch_wheel_library(cudart "${torch_site}/nvidia/cu13/lib/libcudart.so.13" "${torch_site}/nvidia/cu13/include")
torch_wheel_library(nccl "${torch_site}/nvidia/nccl/lib/libnccl.so.2" "${torch_site}/nvidia/nccl/include")
torch_wheel_library(c10_cuda "${torch_site}/torch/lib/libc10_cuda.so" ${torch_include})
torch_wheel_library(torch_cuda "${torch_site}/torch/lib/libtorch_cuda.so" ${torch_include})

# ProcessGroupGloo.hpp includes Gloo's headers, which the wheel does not have; its library is inside libtorch_cpu and none is linked.
find_path(gloo_include gloo/transport/device.h)
if(NOT gloo_include)
    message(FATAL_ERROR "Gloo's headers are not there. Remedy: run ./dev build, or install the Debian package libgloo-dev.")
endif()

# A library whose symbols nobody names still registers its kernels when it is loaded: link it with $<LINK_LIBRARY:keep_needed,...>.
# In the cache, because CMake reads the two in the folder of the target that links.
set(CMAKE_CXX_LINK_LIBRARY_USING_keep_needed "-Wl,--push-state,--no-as-needed" "<LINK_ITEM>" "-Wl,--pop-state" CACHE INTERNAL "")
set(CMAKE_CXX_LINK_LIBRARY_USING_keep_needed_SUPPORTED TRUE CACHE INTERNAL "")
