// Potentials u_i, v_r of documents and ranks: log weights less both are at most 0, and 0 along the
// best permutation. With them sums over permutations stay between 1 and m!, whatever the scores.
#pragma once

namespace crfx {

// Documents by falling number; equal ones keep their order.
void sort_falling(const double* numbers, int m, int* sorted);

// For log weights discount_r * score_i, with discounts that do not rise. `sorted`: documents by
// falling score. O(m).
void product_potentials(const double* score, const double* discount, const int* sorted, int m,
                        double* document, double* rank);

// For any log weights (m x m, document by document). O(m^3): the Hungarian method.
void best_potentials(const double* logs, int m, double* document, double* rank);

}  // namespace crfx
