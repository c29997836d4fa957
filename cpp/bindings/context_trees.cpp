// Trees over features and previous labels, for Python. Arrays are viewed, not copied.
#include "crfx/context_trees.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>

#include "arrays.hpp"
#include "chains.hpp"
#include "crfx/errors.hpp"
#include "feature_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Maybe = MaybeVector1<const float>;

// From an object with rank, size and sum(array) -> array, or None. The GIL is taken for the sums
// alone.
crfx::Workers workers_of(nb::handle workers) {
  if (workers.is_none()) return {};
  return {nb::cast<int>(workers.attr("rank")), nb::cast<int>(workers.attr("size")),
          [workers](double* numbers, int64_t n) {
            nb::gil_scoped_acquire acquired;
            const Vector<double> own(numbers, {static_cast<size_t>(n)}, nb::none());
            const auto sums = nb::cast<Vector1<const double>>(workers.attr("sum")(own));
            if (static_cast<int64_t>(sums.shape(0)) != n)
              throw crfx::InputError("the sums over workers have a wrong length");
            std::copy_n(sums.data(), n, numbers);
          }};
}

struct BoundBins {
  BoundBins(const BoundRows& rows, Vector1<const uint8_t> is_category, int n_threads,
            nb::handle workers, int64_t overlap)
      : rows(rows), bins(make(this->rows, is_category, n_threads, workers_of(workers), overlap)) {}

  static crfx::Bins make(const BoundRows& rows, const Vector1<const uint8_t>& is_category,
                         int n_threads, const crfx::Workers& workers, int64_t overlap) {
    const uint8_t* flags = checked(rows, is_category);
    nb::gil_scoped_release released;
    return {rows.view, flags, n_threads, workers, overlap};
  }

  static const uint8_t* checked(const BoundRows& rows, const Vector1<const uint8_t>& is_category) {
    if (!rows.view.is_sparse() && static_cast<int64_t>(is_category.shape(0)) != rows.view.n_base)
      throw crfx::InputError("pass one flag of categories per feature");
    return is_category.data();
  }

  BoundRows rows;
  crfx::Bins bins;
};

struct BoundTrees {
  BoundTrees(Vector1<const int64_t> starts, Vector1<const int32_t> features,
             Vector1<const int32_t> left, Vector1<const int32_t> right,
             Vector1<const float> thresholds, Vector1<const uint8_t> missing_left,
             Vector1<const int64_t> sets, Vector1<const uint64_t> words,
             Vector1<const int32_t> set_sizes, Vector1<const float> values, int64_t n_labels,
             int order)
      : starts(starts),
        features(features),
        left(left),
        right(right),
        thresholds(thresholds),
        missing_left(missing_left),
        sets(sets),
        words(words),
        set_sizes(set_sizes),
        values(values),
        shape{n_labels, order},
        leaves(view(static_cast<int64_t>(starts.shape(0)) - 1), shape) {}

  crfx::ContextTreesView view(int64_t n_trees) const {
    return {starts.data(), n_trees,           features.data(),     left.data(),
            right.data(),  thresholds.data(), missing_left.data(), sets.data(),
            words.data(),  set_sizes.data(),  values.data()};
  }
  void add_scores(int64_t n_trees, const BoundRows& rows, Vector1<const uint8_t> has_context,
                  float step, std::optional<Vector1<float>> edge,
                  std::optional<Vector1<float>> node, int n_threads) const {
    nb::gil_scoped_release released;
    const int32_t* end = features.data() + starts.data()[n_trees];
    if (rows.view.n_rows && std::any_of(features.data(), end, [&](int32_t feature) {
          return feature >= rows.view.n_features;
        }))
      throw crfx::InputError("the trees ask for features that the rows have not");
    crfx::add_context_scores(view(n_trees), leaves, rows.view, shape, has_context.data(), step,
                             edge ? edge->data() : nullptr, node ? node->data() : nullptr,
                             n_threads);
  }

  Vector1<const int64_t> starts;
  Vector1<const int32_t> features, left, right;
  Vector1<const float> thresholds;
  Vector1<const uint8_t> missing_left;
  Vector1<const int64_t> sets;
  Vector1<const uint64_t> words;
  Vector1<const int32_t> set_sizes;
  Vector1<const float> values;
  crfx::ContextShape shape;
  crfx::LeafContexts leaves;
};

nb::tuple grow(const BoundBins& bins, int64_t n_labels, int order,
               Vector1<const uint8_t> has_context, Vector1<const float> edge, Maybe edge_curvature,
               Vector1<const float> node, Maybe node_curvature, Maybe weights,
               Vector1<const int32_t> chosen, int max_leaves, double l2, double min_child_weight,
               double trimming, double column_share, uint64_t seed, int n_threads,
               nb::handle workers) {
  const crfx::Workers others = workers_of(workers);
  const crfx::ContextSlopes slopes{has_context.data(),      edge.data(),
                                   data_of(edge_curvature), node.data(),
                                   data_of(node_curvature), data_of(weights)};
  crfx::ContextTrees trees;
  {
    nb::gil_scoped_release released;
    trees = crfx::grow_context_trees(
        bins.bins, bins.rows.view, {n_labels, order}, slopes, chosen.data(),
        static_cast<int64_t>(chosen.shape(0)),
        {max_leaves, l2, min_child_weight, trimming, column_share, seed}, n_threads, others);
  }
  return nb::make_tuple(to_array(std::move(trees.starts)), to_array(std::move(trees.features)),
                        to_array(std::move(trees.left)), to_array(std::move(trees.right)),
                        to_array(std::move(trees.thresholds)),
                        to_array(std::move(trees.missing_left)), to_array(std::move(trees.sets)),
                        to_array(std::move(trees.words)), to_array(std::move(trees.set_sizes)),
                        to_array(std::move(trees.values)), to_array(std::move(trees.gains)),
                        to_array(std::move(trees.weights)));
}

}  // namespace

void bind_context_trees(nb::module_& m) {
  nb::class_<BoundRows>(m, "FeatureRows", "Rows of features that trees ask of.")
      .def(nb::init<Vector1<const float>, Vector1<const int64_t>, int64_t, int64_t>(),
           "values"_a.noconvert(), "first"_a.noconvert(), "n_features"_a, "n_base"_a)
      .def(
          nb::init<Vector1<const int64_t>, Vector1<const int32_t>, Vector1<const float>, int64_t>(),
          "starts"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a);
  nb::class_<BoundBins>(m, "Bins", "Features as small numbers, by which trees look for splits.")
      .def(nb::init<const BoundRows&, Vector1<const uint8_t>, int, nb::handle, int64_t>(), "rows"_a,
           "is_category"_a.noconvert(), "n_threads"_a, "workers"_a.none() = nb::none(),
           "overlap"_a = 0,
           "`workers` has rank, size and sum(array) -> array, or is None; the first "
           "`overlap` rows of dense values are also the last ones of the worker before.")
      .def_prop_ro("bytes", [](const BoundBins& own) { return own.bins.bytes(); });
  nb::class_<BoundTrees>(m, "ContextTrees", "Trees over features and the labels before.")
      .def(nb::init<Vector1<const int64_t>, Vector1<const int32_t>, Vector1<const int32_t>,
                    Vector1<const int32_t>, Vector1<const float>, Vector1<const uint8_t>,
                    Vector1<const int64_t>, Vector1<const uint64_t>, Vector1<const int32_t>,
                    Vector1<const float>, int64_t, int>(),
           "starts"_a.noconvert(), "features"_a.noconvert(), "left"_a.noconvert(),
           "right"_a.noconvert(), "thresholds"_a.noconvert(), "missing_left"_a.noconvert(),
           "sets"_a.noconvert(), "words"_a.noconvert(), "set_sizes"_a.noconvert(),
           "values"_a.noconvert(), nb::kw_only(), "n_labels"_a, "order"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("add_scores", &BoundTrees::add_scores, "n_trees"_a, "rows"_a,
           "has_context"_a.noconvert(), nb::kw_only(), "step"_a, "edge"_a.noconvert().none(),
           "node"_a.noconvert().none(), "n_threads"_a,
           "Adds step times the scores of the first trees to edge (rows x contexts x labels) and "
           "node (rows x labels), both flat.");
  m.def(
      "grow_context_trees", &grow, "bins"_a, nb::kw_only(), "n_labels"_a, "order"_a,
      "has_context"_a.noconvert(), "edge"_a.noconvert(), "edge_curvature"_a.noconvert().none(),
      "node"_a.noconvert(), "node_curvature"_a.noconvert().none(), "weights"_a.noconvert().none(),
      "chosen"_a.noconvert(), "max_leaves"_a, "l2"_a, "min_child_weight"_a, "trimming"_a,
      "column_share"_a, "seed"_a, "n_threads"_a, "workers"_a.none() = nb::none(),
      nb::sig("def grow_context_trees(bins: Bins, *, n_labels: int, order: int, has_context: "
              "NDArray[numpy.uint8], edge: NDArray[numpy.float32], edge_curvature: "
              "NDArray[numpy.float32] | None, node: NDArray[numpy.float32], node_curvature: "
              "NDArray[numpy.float32] | None, weights: NDArray[numpy.float32] | None, chosen: "
              "NDArray[numpy.int32], max_leaves: int, l2: float, min_child_weight: float, "
              "trimming: float, column_share: float, seed: int, n_threads: int, workers: object | "
              "None = None) -> "
              "tuple[NDArray[typing.Any], ...]"),
      "Grows a tree per label; returns the arrays that ContextTrees takes, gains and weights.");
}
