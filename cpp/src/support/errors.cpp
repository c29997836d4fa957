#include "crfx/errors.hpp"

#include <cstdio>

namespace crfx {
namespace {

std::string place(int64_t instance, int64_t position) {
  return "instance " + std::to_string(instance) + ", position " + std::to_string(position);
}
std::string shown(double value) {
  if (value != value) return "NaN";
  char text[32];
  std::snprintf(text, sizeof(text), "%+g", value);
  return text;
}
const char* const kLegal =
    "; scores must be finite (within +-1e100), or -inf where a label is forbidden";
// Labels of an entry of a table, counted from the last axis.
std::string entry_of(int64_t entry, int n_axes, int64_t n_labels) {
  std::string text;
  for (int axis = 0; axis < n_axes; ++axis, entry /= n_labels)
    text = std::to_string(entry % n_labels) + (axis ? ", " : "") + text;
  return "[" + text + "]";
}

}  // namespace

void fail_node_score(int64_t instance, int64_t position, int64_t label, double value) {
  throw InputError(place(instance, position) + ": the node score of label " +
                   std::to_string(label) + " is " + shown(value) + kLegal);
}
void fail_edge_score(int64_t instance, int64_t position, int64_t entry, int n_axes,
                     int64_t n_labels, double value) {
  throw InputError(place(instance, position) + ": entry " + entry_of(entry, n_axes, n_labels) +
                   " of the table of the edge that ends there is " + shown(value) + kLegal);
}
void fail_shared_score(const char* name, int64_t type, int64_t entry, int n_axes, int64_t n_labels,
                       double value) {
  throw InputError(std::string("the ") + name + " score " + entry_of(entry, n_axes, n_labels) +
                   (type < 0 ? "" : " of edge type " + std::to_string(type)) + " is " +
                   shown(value) + kLegal);
}
void fail_no_labelling(int64_t instance) {
  throw InputError("instance " + std::to_string(instance) +
                   ": the -inf scores (constraints) leave no allowed labelling");
}
void fail_truth_forbidden(int64_t instance) {
  throw InputError("instance " + std::to_string(instance) +
                   ": the -inf scores (constraints) forbid its true labelling");
}
void fail_parent(int64_t instance, int64_t position, const std::string& what) {
  throw InputError(place(instance, position) + ": " + what);
}

}  // namespace crfx
