// Arrays between C++ and NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

template <class T>
using Vector = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

// Moves a vector into a NumPy array without copying.
template <class T>
Vector<T> to_array(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Vector<T>(owned->data(), {owned->size()}, owner);
}
