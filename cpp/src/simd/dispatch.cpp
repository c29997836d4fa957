// Chooses the instruction set once, at first use.
#include <cstdlib>
#include <cstring>

#include "crfx/errors.hpp"
#include "simd/kernels.hpp"
#ifdef CRFX_X86
#include "simd/processor.hpp"
#endif

namespace crfx {

#define CRFX_DECLARE(isa)                              \
  namespace isa {                                      \
  template <class S>                                   \
  extern const Kernels<S> table;                       \
  extern template const Kernels<float> table<float>;   \
  extern template const Kernels<double> table<double>; \
  }
CRFX_DECLARE(baseline)
#ifdef CRFX_X86
CRFX_DECLARE(avx2)
CRFX_DECLARE(avx512)
#endif

namespace {

template <class S>
const Kernels<S>& choose() {
  const char* wanted = std::getenv("CRFX_ISA");
  if (wanted && std::strcmp(wanted, "baseline") && std::strcmp(wanted, "avx2") &&
      std::strcmp(wanted, "avx512"))
    throw InputError(std::string("the environment variable CRFX_ISA is \"") + wanted +
                     "\": choose baseline, avx2 or avx512, or unset it");
  const auto allowed = [wanted](const char* name) { return !wanted || !std::strcmp(wanted, name); };
#ifdef CRFX_X86
  const Processor processor;
  if (processor.avx512 && allowed("avx512")) return avx512::table<S>;
  if (processor.avx2 && (allowed("avx2") || allowed("avx512"))) return avx2::table<S>;
#else
  (void)allowed;
#endif
  return baseline::table<S>;
}

}  // namespace

template <class S>
const Kernels<S>& kernels() {
  static const Kernels<S>& chosen = choose<S>();
  return chosen;
}
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

}  // namespace crfx
