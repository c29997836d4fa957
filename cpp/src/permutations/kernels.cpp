// Compiled once per instruction set, like simd/kernels.cpp.
#include "permutations/kernels.hpp"

#include "permutations/listing.hpp"
#include "permutations/subset_sums.hpp"

namespace crfx::CRFX_ISA {

#define CRFX_STRING_OF(x) #x
#define CRFX_STRING(x) CRFX_STRING_OF(x)

extern const PermutationKernels permutation_table;
const PermutationKernels permutation_table = {CRFX_STRING(CRFX_ISA), permutation_moments,
                                              scaled_moments};

}  // namespace crfx::CRFX_ISA
