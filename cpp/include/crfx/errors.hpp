// Errors of bad input, with its place.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace crfx {

class InputError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Out of line, so that code compiled per instruction set contains no string handling.
[[noreturn]] void fail_node_score(int64_t instance, int64_t position, int64_t label, double value);
[[noreturn]] void fail_edge_score(int64_t instance, int64_t position, int64_t entry, int n_axes,
                                  int64_t n_labels, double value);
// type: -1 without types.
[[noreturn]] void fail_shared_score(const char* name, int64_t type, int64_t entry, int n_axes,
                                    int64_t n_labels, double value);
[[noreturn]] void fail_no_labelling(int64_t instance);
[[noreturn]] void fail_truth_forbidden(int64_t instance);
[[noreturn]] void fail_parent(int64_t instance, int64_t position, const std::string& what);

}  // namespace crfx
