// Random numbers by counter: they depend on what is drawn, not on threads or on the order of work.
#pragma once

#include <cstdint>

#include "crfx/isa.hpp"

namespace crfx {

// SplitMix64's finaliser.
CRFX_INLINE uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// A uniform number in [0, 1) that depends on (seed, sample, row) alone.
CRFX_INLINE double uniform(uint64_t seed, uint64_t sample, uint64_t row) {
  uint64_t z = mixed(seed + 0x9e3779b97f4a7c15ULL);
  z = mixed(z ^ (sample + 0x9e3779b97f4a7c15ULL));
  z = mixed(z ^ (row + 0x9e3779b97f4a7c15ULL));
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

}  // namespace crfx
