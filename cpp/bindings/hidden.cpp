// Hidden units for Python: scores and gradients of all rows, and sweeps over instances.
#include "crfx/hidden.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>

#include "crfx/hidden_sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;
template <class T>
using MaybeVector = std::optional<Vector<T>>;
template <class T>
using MaybeMatrix = std::optional<Matrix<T>>;

template <class T>
T* data_of(const MaybeVector<T>& array) {
  return array ? array->data() : nullptr;
}

crfx::Activation activation_of(const std::string& name) {
  if (name == "softplus") return crfx::Activation::softplus;
  if (name == "relu") return crfx::Activation::relu;
  if (name == "tanh") return crfx::Activation::tanh;
  if (name == "sigmoid") return crfx::Activation::sigmoid;
  throw nb::value_error(("unknown activation: " + name).c_str());
}

template <class S>
crfx::HiddenUnits<S> units_of(const Vector<const S>& bias, const Matrix<const S>& to_label,
                              const Vector<const S>& constant, const std::string& activation) {
  return {bias.data(),
          to_label.data(),
          constant.data(),
          static_cast<int64_t>(to_label.shape(0)),
          static_cast<int64_t>(to_label.shape(1)),
          activation_of(activation)};
}

template <class S>
void hidden_scores(Matrix<const S> inputs, Vector<const S> bias, Matrix<const S> to_label,
                   Vector<const S> constant, const std::string& activation, Matrix<S> scores,
                   int n_threads) {
  const auto units = units_of<S>(bias, to_label, constant, activation);
  const auto n_rows = static_cast<int64_t>(scores.shape(0));
  nb::gil_scoped_release released;
  crfx::hidden_scores(units, inputs.data(), scores.data(), n_rows, n_threads);
}

template <class S>
void hidden_gradient(Matrix<const S> inputs, Vector<const S> bias, Matrix<const S> to_label,
                     Vector<const S> constant, const std::string& activation,
                     Matrix<const S> slopes, Matrix<S> input_gradient, Vector<double> in_bias,
                     Matrix<double> in_to_label, Vector<double> in_constant, int n_threads) {
  const auto units = units_of<S>(bias, to_label, constant, activation);
  const auto n_rows = static_cast<int64_t>(slopes.shape(0));
  const crfx::HiddenGradient gradient{in_bias.data(), in_to_label.data(), in_constant.data()};
  nb::gil_scoped_release released;
  crfx::hidden_gradient(units, inputs.data(), slopes.data(), input_gradient.data(), gradient,
                        n_rows, n_threads);
}

class HiddenSweeps {
 public:
  HiddenSweeps(MaybeMatrix<const float> dense, MaybeVector<const int64_t> starts,
               MaybeVector<const int32_t> indices, MaybeVector<const float> values,
               Vector<const int64_t> offsets, MaybeVector<const int32_t> edge_types,
               Vector<const int32_t> labels, MaybeVector<const double> weights, int64_t n_features,
               int64_t n_hidden, const std::string& activation, bool has_skip, int n_labels,
               int order, int64_t n_types, bool has_edge, bool has_start, bool has_end)
      : dense_(dense),
        starts_(starts),
        indices_(indices),
        values_(values),
        offsets_(offsets),
        edge_types_(edge_types),
        labels_(labels),
        weights_(weights) {
    data_.dense = dense_ ? dense_->data() : nullptr;
    data_.sparse = {data_of(starts_), data_of(indices_), data_of(values_), 0};
    data_.n_features = n_features;
    data_.n_hidden = n_hidden;
    data_.activation = activation_of(activation);
    data_.has_skip = has_skip;
    data_.chains.offsets = offsets_.data();
    data_.chains.edge_types = data_of(edge_types_);
    data_.chains.labels = labels_.data();
    data_.chains.weights = data_of(weights_);
    data_.chains.n_types = n_types;
    data_.chains.n_labels = n_labels;
    data_.chains.order = order;
    data_.chains.has_edge = has_edge;
    data_.chains.has_start = has_start;
    data_.chains.has_end = has_end;
  }

  int64_t size() const { return data_.size(); }

  void catch_up(Vector<float> values, Vector<double> sum, Vector<double> product_then,
                Vector<double> steps_then, double product, double steps) const {
    crfx::HiddenParameters at{
        values.data(), sum.data(), product_then.data(), steps_then.data(), product, steps, 0};
    nb::gil_scoped_release released;
    crfx::hidden_catch_up(data_, at);
  }

  std::tuple<double, double, int64_t> run(Vector<const int64_t> order, int64_t batch_size,
                                          int64_t first, double step, double period, double penalty,
                                          double smallest_shrinkage, bool counts, bool perceptron,
                                          float margin, Vector<const double> rates, double dropout,
                                          uint64_t seed, Vector<float> values, Vector<double> sum,
                                          Vector<double> product_then, Vector<double> steps_then,
                                          double product, double steps, int64_t n_counted) const {
    const crfx::SweepSteps asked{
        order.data(), static_cast<int64_t>(order.shape(0)),
        batch_size,   first,
        step,         period,
        penalty,      smallest_shrinkage,
        counts,       perceptron ? crfx::SweepLoss::perceptron : crfx::SweepLoss::likelihood,
        margin};
    const double* r = rates.data();
    const crfx::HiddenRates own{r[0], r[1], r[2], r[3], r[4], r[5], r[6]};
    crfx::HiddenParameters at{values.data(),     sum.data(), product_then.data(),
                              steps_then.data(), product,    steps,
                              n_counted};
    nb::gil_scoped_release released;
    crfx::hidden_sweep(data_, asked, own, {dropout, seed}, at);
    return {at.product, at.steps, at.n_counted};
  }

 private:
  MaybeMatrix<const float> dense_;
  MaybeVector<const int64_t> starts_;
  MaybeVector<const int32_t> indices_;
  MaybeVector<const float> values_;
  Vector<const int64_t> offsets_;
  MaybeVector<const int32_t> edge_types_;
  Vector<const int32_t> labels_;
  MaybeVector<const double> weights_;
  crfx::HiddenSweepData data_;
};

template <class S>
void bind_rows(nb::module_& m) {
  m.def("hidden_scores", &hidden_scores<S>, "inputs"_a.noconvert(), "bias"_a.noconvert(),
        "to_label"_a.noconvert(), "constant"_a.noconvert(), "activation"_a, "scores"_a.noconvert(),
        "n_threads"_a, "Fills scores (rows x K) from inputs of units (rows x H).");
  m.def("hidden_gradient", &hidden_gradient<S>, "inputs"_a.noconvert(), "bias"_a.noconvert(),
        "to_label"_a.noconvert(), "constant"_a.noconvert(), "activation"_a, "slopes"_a.noconvert(),
        "input_gradient"_a.noconvert(), "in_bias"_a.noconvert(), "in_to_label"_a.noconvert(),
        "in_constant"_a.noconvert(), "n_threads"_a,
        "Fills the gradients of sum(slopes * scores) in the inputs and the parameters.");
}

}  // namespace

void bind_hidden(nb::module_& m) {
  bind_rows<float>(m);
  bind_rows<double>(m);
  nb::class_<HiddenSweeps>(m, "HiddenSweeps",
                           "Chains to sweep over; the arrays are viewed, not copied.")
      .def(
          nb::init<MaybeMatrix<const float>, MaybeVector<const int64_t>, MaybeVector<const int32_t>,
                   MaybeVector<const float>, Vector<const int64_t>, MaybeVector<const int32_t>,
                   Vector<const int32_t>, MaybeVector<const double>, int64_t, int64_t,
                   const std::string&, bool, int, int, int64_t, bool, bool, bool>(),
          "dense"_a.noconvert().none(), "starts"_a.noconvert().none(),
          "indices"_a.noconvert().none(), "values"_a.noconvert().none(), "offsets"_a.noconvert(),
          "edge_types"_a.noconvert().none(), "labels"_a.noconvert(), "weights"_a.noconvert().none(),
          nb::kw_only(), "n_features"_a, "n_hidden"_a, "activation"_a, "has_skip"_a, "n_labels"_a,
          "order"_a, "n_types"_a, "has_edge"_a, "has_start"_a, "has_end"_a)
      .def_prop_ro("size", &HiddenSweeps::size, "How many parameters there are.")
      .def("catch_up", &HiddenSweeps::catch_up, nb::kw_only(), "values"_a.noconvert(),
           "sum"_a.noconvert(), "product_then"_a.noconvert(), "steps_then"_a.noconvert(),
           "product"_a, "steps"_a, "Brings all parameters to the last step.")
      .def("run", &HiddenSweeps::run, "order"_a.noconvert(), nb::kw_only(), "batch_size"_a,
           "first"_a, "step"_a, "period"_a, "penalty"_a, "smallest_shrinkage"_a, "counts"_a,
           "perceptron"_a, "margin"_a, "rates"_a.noconvert(), "dropout"_a, "seed"_a,
           "values"_a.noconvert(), "sum"_a.noconvert(), "product_then"_a.noconvert(),
           "steps_then"_a.noconvert(), "product"_a, "steps"_a, "n_counted"_a,
           "Sweeps once over the instances in order, changing the arrays of parameters; returns "
           "what product, steps and n_counted then are.");
}
