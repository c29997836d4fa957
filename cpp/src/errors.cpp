#include "crfx/errors.hpp"

namespace crfx {
namespace {

std::string place(int64_t instance, int64_t position) {
  return "instance " + std::to_string(instance) + ", position " + std::to_string(position);
}
std::string shown(double value) { return value != value ? "NaN" : "+inf"; }
const char* const kLegal = "; scores must be finite, or -inf where a label is forbidden";

}  // namespace

void fail_node_score(int64_t instance, int64_t position, int64_t label, double value) {
  throw InputError(place(instance, position) + ": the node score of label " + std::to_string(label) +
                   " is " + shown(value) + kLegal);
}
void fail_edge_score(int64_t instance, int64_t position, double value) {
  throw InputError(place(instance, position) + ": the table of the edge that ends there holds " +
                   shown(value) + kLegal);
}
void fail_shared_score(const char* name, double value) {
  throw InputError(std::string("the ") + name + " scores hold " + shown(value) + kLegal);
}
void fail_no_labelling(int64_t instance) {
  throw InputError("instance " + std::to_string(instance) +
                   ": the -inf scores (constraints) leave no allowed labelling");
}
void fail_parent(int64_t instance, int64_t position, const std::string& what) {
  throw InputError(place(instance, position) + ": " + what);
}

}  // namespace crfx
