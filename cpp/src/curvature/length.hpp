// The length bound (GBCRF, Corollary 4.1): twice the nodes, or twice the edges, of the own tree.
#pragma once

#include "inference/instance.hpp"

namespace crfx::CRFX_ISA {

template <class S>
inline void length_gamma(const Instance<S>& inst, S* node_gamma, S* edge_gamma, Workspace& work) {
  int64_t *root = work.take<int64_t>(inst.n), *nodes = work.take<int64_t>(inst.n);
  int64_t* edges = work.take<int64_t>(inst.n);
  for (int64_t v = 0; v < inst.n; ++v) nodes[v] = edges[v] = 0;
  for (int64_t k = 0; k < inst.n; ++k) {
    const int64_t v = inst.at(k), p = inst.parent(v);
    root[v] = p < 0 ? v : root[p];
    ++nodes[root[v]];
    edges[root[v]] += inst.has_table(v);
  }
  for (int64_t v = 0; v < inst.n; ++v) {
    node_gamma[v] = static_cast<S>(2 * nodes[root[v]]);
    edge_gamma[v] = static_cast<S>(inst.has_table(v) ? 2 * edges[root[v]] : 0);
  }
}

}  // namespace crfx::CRFX_ISA
