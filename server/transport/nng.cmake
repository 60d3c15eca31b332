# Finds or builds NNG, as the target `tine_nng`.
#
# The system's NNG is used if it is 1.10.1 or 1.11. Otherwise 1.11 is built here and linked
# statically, with the flags of this build, sanitizers too. Its source is, in this order,
# TINE_NNG_SOURCE_DIR, build/nng-source (scripts/fetch-nng), the tag v1.11 of its repository.

set(TINE_NNG_SOURCE_DIR "" CACHE PATH "NNG's source tree, 1.10.1 or 1.11")

# Returns why a version is refused; empty if it is not.
function(nng_refuse version out_reason)
    set(${out_reason} "" PARENT_SCOPE)
    if(version VERSION_EQUAL 1.10.1 OR version MATCHES "^1\\.11(\\.|$)")
        return()
    endif()
    set(reason "only 1.10.1 and 1.11 are tried")
    if(version VERSION_LESS 1.10.1)
        string(CONCAT reason "its listener dies of a peer that connects and hangs up, and each "
            "pipelined client that dies leaks a descriptor")
    elseif(version VERSION_GREATER_EQUAL 1.12 AND version VERSION_LESS 1.13)
        set(reason "it deadlocks in close")
    endif()
    set(${out_reason} "NNG ${version}: ${reason}" PARENT_SCOPE)
endfunction()

function(nng_header_version header out_version)
    set(version "")
    file(STRINGS ${header} lines REGEX "#define NNG_(MAJOR|MINOR|PATCH)_VERSION [0-9]+")
    foreach(line IN LISTS lines)
        string(REGEX MATCH "[0-9]+$" number ${line})
        list(APPEND version ${number})
    endforeach()
    list(JOIN version "." version)
    set(${out_version} ${version} PARENT_SCOPE)
endfunction()

add_library(tine_nng INTERFACE)
find_path(NNG_HEADERS nng/nng.h)
find_library(NNG_LIBRARY nng)
if(NNG_HEADERS AND NNG_LIBRARY AND NOT TINE_NNG_SOURCE_DIR)
    nng_header_version(${NNG_HEADERS}/nng/nng.h nng_version)
    nng_refuse("${nng_version}" nng_reason)
    if(NOT nng_reason)
        message(STATUS "NNG ${nng_version} of the system: ${NNG_LIBRARY}")
        target_include_directories(tine_nng SYSTEM INTERFACE ${NNG_HEADERS})
        target_link_libraries(tine_nng INTERFACE ${NNG_LIBRARY})
        return()
    endif()
    message(STATUS "The system's NNG is not used. ${nng_reason}")
endif()

set(nng_source ${TINE_NNG_SOURCE_DIR})
if(NOT nng_source AND EXISTS ${PROJECT_SOURCE_DIR}/build/nng-source/CMakeLists.txt)
    set(nng_source ${PROJECT_SOURCE_DIR}/build/nng-source)
endif()
if(NOT nng_source)
    include(FetchContent)
    message(STATUS "Fetching the source of NNG 1.11")
    FetchContent_Populate(nng_source QUIET # its tag v1.11
        GIT_REPOSITORY https://github.com/nanomsg/nng.git
        GIT_TAG 84aa701f42968bf536141a24e826da66963b571a
        SOURCE_DIR ${CMAKE_BINARY_DIR}/nng-source
        SUBBUILD_DIR ${CMAKE_BINARY_DIR}/nng-source-fetch)
    set(nng_source ${CMAKE_BINARY_DIR}/nng-source)
endif()

nng_header_version(${nng_source}/include/nng/nng.h nng_version)
nng_refuse("${nng_version}" nng_reason)
if(nng_reason)
    message(FATAL_ERROR "${nng_source} cannot be used. ${nng_reason}")
endif()
message(STATUS "NNG ${nng_version} from ${nng_source}")

# A function, so that the variables are set for NNG only. NNG is built with what the daemon and its
# tests need: REQ, REP, PUB and SUB over ipc and tcp, and the statistics, which say what was sent.
function(nng_build)
    set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
    set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
    set(BUILD_SHARED_LIBS OFF)
    foreach(option
            TESTS TOOLS ENABLE_NNGCAT ENABLE_COMPAT ENABLE_HTTP ENABLE_TLS
            PROTO_BUS0 PROTO_PAIR0 PROTO_PAIR1 PROTO_PUSH0 PROTO_PULL0 PROTO_RESPONDENT0
            PROTO_SURVEYOR0 TRANSPORT_INPROC TRANSPORT_WS TRANSPORT_WSS TRANSPORT_TLS
            TRANSPORT_FDC TRANSPORT_ZEROTIER)
        set(NNG_${option} OFF)
    endforeach()
    set(NNG_ENABLE_STATS ON)
    add_subdirectory(${nng_source} ${CMAKE_BINARY_DIR}/nng EXCLUDE_FROM_ALL)
endfunction()
nng_build()
target_compile_options(nng PRIVATE -w) # not ours to warn about
target_include_directories(tine_nng SYSTEM INTERFACE ${nng_source}/include)
target_link_libraries(tine_nng INTERFACE nng)
