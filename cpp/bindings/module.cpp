// Converts arrays and releases the interpreter lock. No mathematics here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "crfx/errors.hpp"
#include "crfx/inference.hpp"
#include "crfx/linear.hpp"
#include "crfx/parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Any number of axes, C-contiguous, on the CPU. Shapes are checked in Python, once, with the names
// that a user knows.
template <class T>
using Array = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<Array<T>>;

template <class T>
T* data_of(const Maybe<T>& array) {
  return array ? array->data() : nullptr;
}

crfx::Sharing sharing_of(const std::string& name) {
  if (name == "shared") return crfx::Sharing::shared;
  if (name == "typed") return crfx::Sharing::typed;
  if (name == "each") return crfx::Sharing::each;
  throw nb::value_error(("unknown sharing: " + name).c_str());
}

crfx::Curvature curvature_of(const std::optional<std::string>& name) {
  if (!name) return crfx::Curvature::none;
  if (*name == "mixing") return crfx::Curvature::mixing;
  if (*name == "dobrushin") return crfx::Curvature::dobrushin;
  if (*name == "exact") return crfx::Curvature::exact;
  if (*name == "length") return crfx::Curvature::length;
  throw nb::value_error(("unknown curvature: " + *name).c_str());
}

template <class T>
crfx::EdgeOutput edge_output(const Maybe<T>& each, const Maybe<double>& sum) {
  return each ? crfx::EdgeOutput::each : sum ? crfx::EdgeOutput::sum : crfx::EdgeOutput::none;
}

// A scored batch. Keeps the arrays it views and the visit order of its forests alive.
template <class S>
struct BoundProblem {
  Array<const S> node, edge;
  Array<const int64_t> offsets;
  Maybe<const int64_t> parents;
  Maybe<const int32_t> edge_types;
  Maybe<const S> start, end;
  std::vector<int64_t> visit;
  crfx::Problem<S> view;

  BoundProblem(Array<const S> node_, Array<const S> edge_, Array<const int64_t> offsets_,
               Maybe<const int64_t> parents_, Maybe<const int32_t> edge_types_,
               Maybe<const S> start_, Maybe<const S> end_, int order, const std::string& sharing)
      : node(node_),
        edge(edge_),
        offsets(offsets_),
        parents(parents_),
        edge_types(edge_types_),
        start(start_),
        end(end_) {
    view.node = node.data();
    view.edge = edge.data();
    view.offsets = offsets.data();
    view.parents = data_of(parents);
    view.edge_types = data_of(edge_types);
    view.start = data_of(start);
    view.end = data_of(end);
    view.n_instances = static_cast<int64_t>(offsets.shape(0)) - 1;
    view.n_labels = static_cast<int>(node.shape(1));
    view.order = order;
    view.sharing = sharing_of(sharing);
    view.n_tables = view.sharing == crfx::Sharing::shared ? 1 : static_cast<int64_t>(edge.shape(0));
    if (!view.parents) return;
    nb::gil_scoped_release released;
    visit = crfx::visit_order(view.offsets, view.parents, view.n_instances);
    view.visit = visit.data();
  }
};

template <class S>
void sum_product(const BoundProblem<S>& problem, Array<double> log_z, Maybe<S> node, Maybe<S> edge,
                 Maybe<double> edge_sum, Maybe<double> edge_curvature, Maybe<const double> weight,
                 Maybe<S> node_gamma, Maybe<S> edge_gamma,
                 const std::optional<std::string>& curvature, int n_threads) {
  crfx::SumOutputs<S> out;
  out.log_z = log_z.data();
  out.node = data_of(node);
  out.edge = data_of(edge);
  out.edge_sum = data_of(edge_sum);
  out.edge_curvature = data_of(edge_curvature);
  out.weight = data_of(weight);
  out.node_gamma = data_of(node_gamma);
  out.edge_gamma = data_of(edge_gamma);
  out.curvature = curvature_of(curvature);
  out.edge_output = edge_output(edge, edge_sum);
  nb::gil_scoped_release released;
  crfx::sum_product(problem.view, out, n_threads);
}

template <class S>
void expectation(const BoundProblem<S>& problem, Array<const S> cost, Array<double> value,
                 Array<S> node, Maybe<S> edge, Maybe<double> edge_sum, int n_threads) {
  crfx::ExpectationOutputs<S> out;
  out.value = value.data();
  out.node = node.data();
  out.edge = data_of(edge);
  out.edge_sum = data_of(edge_sum);
  out.edge_output = edge_output(edge, edge_sum);
  nb::gil_scoped_release released;
  crfx::expectation(problem.view, cost.data(), out, n_threads);
}

template <class S>
void loss_scaled(const BoundProblem<S>& problem, Array<const int32_t> cost,
                 Array<const int32_t> truth, Array<const double> unit, Maybe<const double> weight,
                 Array<double> value, Maybe<S> node, Maybe<S> node_curvature, Maybe<S> edge,
                 Maybe<S> edge_curvature, Maybe<double> edge_sum, Maybe<double> edge_curvature_sum,
                 int n_threads) {
  crfx::LossScaledOutputs<S> out;
  out.value = value.data();
  out.node = data_of(node);
  out.node_curvature = data_of(node_curvature);
  out.edge = data_of(edge);
  out.edge_curvature = data_of(edge_curvature);
  out.weight = data_of(weight);
  out.edge_output = edge_output(edge, edge_sum);
  const crfx::WholeCosts costs{cost.data(), truth.data(), unit.data()};
  nb::gil_scoped_release released;
  crfx::loss_scaled(problem.view, costs, out, data_of(edge_sum), data_of(edge_curvature_sum),
                    n_threads);
}

template <class S>
void max_product(const BoundProblem<S>& problem, Array<int32_t> labels, Array<double> scores,
                 int n_threads) {
  nb::gil_scoped_release released;
  crfx::max_product(problem.view, labels.data(), scores.data(), n_threads);
}

template <class S>
void sample(const BoundProblem<S>& problem, Array<int32_t> labels, uint64_t seed, int n_threads) {
  const auto n_samples = static_cast<int64_t>(labels.shape(0));
  nb::gil_scoped_release released;
  crfx::sample(problem.view, n_samples, seed, labels.data(), n_threads);
}

template <class S>
void event_curvature(Array<S> p, Maybe<const S> gamma, double factor, double least,
                     Array<S> curvature, int n_threads) {
  const auto rows = static_cast<int64_t>(p.shape(0));
  const auto events = rows ? static_cast<int64_t>(p.size()) / rows : 0;
  const bool per_event = gamma && gamma->ndim() > 1;
  nb::gil_scoped_release released;
  crfx::event_curvature(p.data(), data_of(gamma), per_event, rows, events, static_cast<S>(factor),
                        static_cast<S>(least), curvature.data(), n_threads);
}

template <class S>
void softmax(Array<const S> scores, Array<S> p, Array<double> log_z, int n_threads) {
  nb::gil_scoped_release released;
  crfx::softmax(scores.data(), static_cast<int64_t>(scores.shape(0)),
                static_cast<int64_t>(scores.shape(1)), p.data(), log_z.data(), n_threads);
}

template <class S>
void add_table_rows(Array<const S> x, Array<const S> table, Array<const int32_t> which,
                    Maybe<const S> factor, Array<S> to, int n_threads) {
  nb::gil_scoped_release released;
  crfx::add_table_rows(x.data(), table.data(), which.data(), data_of(factor),
                       static_cast<int64_t>(x.shape(0)), static_cast<int64_t>(x.shape(1)),
                       to.data(), n_threads);
}

template <class S>
double weighted_total(Array<const S> weight, Array<const S> score, int n_threads) {
  nb::gil_scoped_release released;
  return crfx::weighted_total(weight.data(), score.data(), static_cast<int64_t>(weight.size()),
                              n_threads);
}

template <class S>
crfx::Sparse<S> sparse_of(const Array<const int64_t>& starts, const Array<const int32_t>& indices,
                          const Maybe<const S>& values) {
  return {starts.data(), indices.data(), data_of(values),
          static_cast<int64_t>(starts.shape(0)) - 1};
}

std::tuple<Vector<int64_t>, Vector<int32_t>> observed_pairs(Array<const int64_t> starts,
                                                            Array<const int32_t> indices,
                                                            Array<const int32_t> codes,
                                                            int64_t n_features) {
  crfx::Pairs found;
  {
    nb::gil_scoped_release released;
    found =
        crfx::observed_pairs(starts.data(), indices.data(),
                             static_cast<int64_t>(starts.shape(0)) - 1, codes.data(), n_features);
  }
  return {to_array(std::move(found.starts)), to_array(std::move(found.outputs))};
}

template <class S>
crfx::Span<S> span_of(const Array<const S>& array) {
  return {array.data(), array.data() + array.size()};
}

template <class S>
void linear_scores(Array<const int64_t> starts, Array<const int32_t> indices, Maybe<const S> values,
                   Array<const int64_t> weight_starts, Array<const int32_t> outputs,
                   Array<const S> weights, Array<S> scores, int n_threads) {
  const auto X = sparse_of(starts, indices, values);
  const auto n_outputs = static_cast<int64_t>(scores.shape(1));
  nb::gil_scoped_release released;
  const auto n_features = static_cast<int64_t>(weight_starts.size()) - 1;
  crfx::linear_scores(X, {weight_starts.data(), outputs.data(), n_outputs, n_features},
                      span_of(weights), scores.data(), n_threads);
}

template <class S>
void linear_gradient(Array<const int64_t> starts, Array<const int32_t> indices,
                     Maybe<const S> values, Array<const int32_t> features,
                     Array<const int64_t> weight_starts, Array<const int32_t> outputs,
                     Array<const S> slope, Array<double> gradient, int n_threads) {
  const crfx::Columns<S> columns{sparse_of(starts, indices, values), features.data()};
  const auto n_outputs = static_cast<int64_t>(slope.shape(1));
  nb::gil_scoped_release released;
  crfx::linear_gradient(columns, {weight_starts.data(), outputs.data(), n_outputs}, span_of(slope),
                        gradient.data(), n_threads);
}

template <class S>
std::tuple<Vector<int64_t>, Vector<double>, Vector<int32_t>> k_best(const BoundProblem<S>& problem,
                                                                    int64_t k, int n_threads) {
  crfx::KBest found;
  {
    nb::gil_scoped_release released;
    found = crfx::k_best(problem.view, k, n_threads);
  }
  return {to_array(std::move(found.counts)), to_array(std::move(found.scores)),
          to_array(std::move(found.labels))};
}

template <class S>
void bind(nb::module_& m, const char* problem_name) {
  nb::class_<BoundProblem<S>>(m, problem_name, "A scored batch; see crfx.inference.problem.")
      .def(
          nb::init<Array<const S>, Array<const S>, Array<const int64_t>, Maybe<const int64_t>,
                   Maybe<const int32_t>, Maybe<const S>, Maybe<const S>, int, const std::string&>(),
          "node"_a.noconvert(), "edge"_a.noconvert(), "offsets"_a.noconvert(),
          "parents"_a.noconvert().none(), "edge_types"_a.noconvert().none(),
          "start"_a.noconvert().none(), "end"_a.noconvert().none(), "order"_a, "sharing"_a);
  m.def("sum_product", &sum_product<S>, "problem"_a, "log_z"_a.noconvert(),
        "node"_a.noconvert().none(), "edge"_a.noconvert().none(), "edge_sum"_a.noconvert().none(),
        "edge_curvature"_a.noconvert().none(), "weight"_a.noconvert().none(),
        "node_gamma"_a.noconvert().none(), "edge_gamma"_a.noconvert().none(), "curvature"_a.none(),
        "n_threads"_a, "Fills the given arrays; those that are None are not computed.");
  m.def("expectation", &expectation<S>, "problem"_a, "cost"_a.noconvert(), "value"_a.noconvert(),
        "node"_a.noconvert(), "edge"_a.noconvert().none(), "edge_sum"_a.noconvert().none(),
        "n_threads"_a, "Expected cost per instance and its gradient in the scores.");
  m.def("loss_scaled", &loss_scaled<S>, "problem"_a, "cost"_a.noconvert(), "truth"_a.noconvert(),
        "unit"_a.noconvert(), "weight"_a.noconvert().none(), "value"_a.noconvert(),
        "node"_a.noconvert().none(), "node_curvature"_a.noconvert().none(),
        "edge"_a.noconvert().none(), "edge_curvature"_a.noconvert().none(),
        "edge_sum"_a.noconvert().none(), "edge_curvature_sum"_a.noconvert().none(), "n_threads"_a,
        "The loss-scaled sum per instance; slopes where node is given, by row or summed.");
  m.def("max_product", &max_product<S>, "problem"_a, "labels"_a.noconvert(), "scores"_a.noconvert(),
        "n_threads"_a, "Best labelling and its score.");
  m.def("sample", &sample<S>, "problem"_a, "labels"_a.noconvert(), "seed"_a, "n_threads"_a,
        "Fills labels (samples x rows).");
  m.def("event_curvature", &event_curvature<S>, "p"_a.noconvert(), "gamma"_a.noconvert().none(),
        "factor"_a, "least"_a, "curvature"_a.noconvert(), "n_threads"_a,
        "Fills curvature with max(factor * gamma * p * (1 - p), least); no p stays above 1.");
  m.def("softmax", &softmax<S>, "scores"_a.noconvert(), "p"_a.noconvert(), "log_z"_a.noconvert(),
        "n_threads"_a, "Fills p (rows x K) and log_z (rows) with the softmax of every row.");
  m.def("add_table_rows", &add_table_rows<S>, "x"_a.noconvert(), "table"_a.noconvert(),
        "which"_a.noconvert(), "factor"_a.noconvert().none(), "to"_a.noconvert(), "n_threads"_a,
        "Fills to with x + factor * table[which], row by row; a negative which adds nothing.");
  m.def("weighted_total", &weighted_total<S>, "weight"_a.noconvert(), "score"_a.noconvert(),
        "n_threads"_a, "The sum of weight * score; a weight of 0 silences a score of -inf.");
  m.def("linear_scores", &linear_scores<S>, "starts"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert().none(), "weight_starts"_a.noconvert(), "outputs"_a.noconvert(),
        "weights"_a.noconvert(), "scores"_a.noconvert(), "n_threads"_a,
        "Adds X W to scores, X by rows; values None: all 1.");
  m.def("linear_gradient", &linear_gradient<S>, "starts"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert().none(), "features"_a.noconvert(), "weight_starts"_a.noconvert(),
        "outputs"_a.noconvert(), "slope"_a.noconvert(), "gradient"_a.noconvert(), "n_threads"_a,
        "Adds X^T slope to gradient, one per weight; X by columns, each of one of `features`.");
  m.def("k_best", &k_best<S>, "problem"_a, "k"_a, "n_threads"_a,
        "(counts per instance, scores, labels), concatenated.");
}

}  // namespace

void bind_boosted_trees(nb::module_& m);  // boosted_trees.cpp
void bind_context_trees(nb::module_& m);  // context_trees.cpp
void bind_features(nb::module_& m);       // features.cpp
void bind_hidden(nb::module_& m);         // hidden.cpp
void bind_permutations(nb::module_& m);   // permutations.cpp
void bind_sweep(nb::module_& m);          // sweep.cpp

NB_MODULE(_native, m) {
  m.doc() = "The compiled core of crfx. Use crfx.inference.";
  nb::exception<crfx::InputError>(m, "InputError", PyExc_ValueError);
  bind<float>(m, "Problem32");
  bind<double>(m, "Problem64");
  bind_context_trees(m);
  bind_boosted_trees(m);
  bind_features(m);
  bind_hidden(m);
  bind_permutations(m);
  bind_sweep(m);
  m.def("observed_pairs", &observed_pairs, "starts"_a.noconvert(), "indices"_a.noconvert(),
        "codes"_a.noconvert(), "n_features"_a,
        "(starts, outputs): the outputs with which each feature occurs, rising; X by rows, codes "
        "the output of each row, negative where it has none.");
  m.def("instruction_set", &crfx::instruction_set, "Name of the instruction set in use.");
  m.def("available_threads", &crfx::available_threads, "Threads used when none are named.");
}
