// Compiled once per instruction set, see kernels.cpp.
#include "crfx/order_kernels.hpp"

#include "crfx/order_lists.hpp"
#include "crfx/order_sums.hpp"

namespace crfx::CRFX_ISA {

#define CRFX_STRING_OF(x) #x
#define CRFX_STRING(x) CRFX_STRING_OF(x)

extern const OrderKernels order_table;
const OrderKernels order_table = {CRFX_STRING(CRFX_ISA), order_moments, scaled_moments};

}  // namespace crfx::CRFX_ISA
