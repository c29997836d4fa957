// Code in namespace crfx::CRFX_ISA is compiled once per instruction set (simd/kernels.cpp and
// permutations/kernels.cpp) and chosen at run time. It must not instantiate library templates that
// could be shared between the copies: raw pointers and functions of this namespace only, and
// CRFX_INLINE ones of others.
#pragma once

#ifndef CRFX_ISA
#define CRFX_ISA baseline
#endif

#define CRFX_INLINE inline __attribute__((always_inline))
// Tells the vectoriser that iterations are independent.
#define CRFX_SIMD _Pragma("omp simd")
