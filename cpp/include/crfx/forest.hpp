// Forests by parent index: an order of visit with parents before their children.
#pragma once

#include <cstdint>
#include <vector>

namespace crfx {

// The visit order of every instance (indices within the instance, parents first, roots and
// siblings by index), concatenated. Throws InputError naming instance and position for a parent
// out of range or a cycle. Cost: linear in rows.
std::vector<int64_t> visit_order(const int64_t* offsets, const int64_t* parents,
                                 int64_t n_instances);

}  // namespace crfx
