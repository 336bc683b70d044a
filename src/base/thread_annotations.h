// SPDX-License-Identifier: Apache-2.0
//
// Which mutex guards what, in words that clang checks (scripts/lint, -Wthread-safety); other compilers see nothing.
#pragma once

#if defined(__clang__)
#define CCOM_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define CCOM_THREAD_ANNOTATION(...)
#endif

// On members: only to be touched while the mutex is held.
#define CCOM_GUARDED_BY(mutex) CCOM_THREAD_ANNOTATION(guarded_by(mutex))
// On mutexes that are held together: the others are taken first.
#define CCOM_ACQUIRED_AFTER(...) CCOM_THREAD_ANNOTATION(acquired_after(__VA_ARGS__))
// On functions that take the mutex themselves.
#define CCOM_EXCLUDES(...) CCOM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// On functions and lambdas: the caller holds the mutex.
#define CCOM_REQUIRES(...) CCOM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
// On functions that take or give a mutex; without an argument, the object itself.
#define CCOM_ACQUIRE(...) CCOM_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define CCOM_ACQUIRE_SHARED(...) CCOM_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define CCOM_RELEASE(...) CCOM_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define CCOM_RELEASE_GENERIC(...) CCOM_THREAD_ANNOTATION(release_generic_capability(__VA_ARGS__))
#define CCOM_TRY_ACQUIRE(...) CCOM_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
// On classes.
#define CCOM_CAPABILITY(name) CCOM_THREAD_ANNOTATION(capability(name))
#define CCOM_SCOPED_CAPABILITY CCOM_THREAD_ANNOTATION(scoped_lockable)
// On functions whose locking the analysis cannot follow; a comment says why it is right.
#define CCOM_NO_THREAD_SAFETY_ANALYSIS CCOM_THREAD_ANNOTATION(no_thread_safety_analysis)
