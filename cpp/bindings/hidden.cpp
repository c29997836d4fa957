// Hidden units for Python: scores and gradients of all rows, and epochs over instances.
#include "crfx/hidden.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "chains.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;
template <class T>
using MaybeMatrix = std::optional<Matrix<T>>;

crfx::Activation activation_of(const std::string& name) {
  if (name == "softplus") return crfx::Activation::softplus;
  if (name == "relu") return crfx::Activation::relu;
  if (name == "tanh") return crfx::Activation::tanh;
  if (name == "sigmoid") return crfx::Activation::sigmoid;
  throw nb::value_error(("unknown activation: " + name).c_str());
}

template <class S>
crfx::HiddenUnits<S> units_of(const Vector1<const S>& bias, const Matrix<const S>& to_label,
                              const Vector1<const S>& constant, const std::string& activation) {
  return {bias.data(),
          to_label.data(),
          constant.data(),
          static_cast<int64_t>(to_label.shape(0)),
          static_cast<int64_t>(to_label.shape(1)),
          activation_of(activation)};
}

template <class S>
void hidden_scores(Matrix<const S> inputs, Vector1<const S> bias, Matrix<const S> to_label,
                   Vector1<const S> constant, const std::string& activation, Matrix<S> scores,
                   int n_threads) {
  const auto units = units_of<S>(bias, to_label, constant, activation);
  const auto n_rows = static_cast<int64_t>(scores.shape(0));
  nb::gil_scoped_release released;
  crfx::hidden_scores(units, inputs.data(), scores.data(), n_rows, n_threads);
}

template <class S>
void hidden_gradient(Matrix<const S> inputs, Vector1<const S> bias, Matrix<const S> to_label,
                     Vector1<const S> constant, const std::string& activation,
                     Matrix<const S> slopes, Matrix<S> input_gradient, Vector1<double> in_bias,
                     Matrix<double> in_to_label, Vector1<double> in_constant, int n_threads) {
  const auto units = units_of<S>(bias, to_label, constant, activation);
  const auto n_rows = static_cast<int64_t>(slopes.shape(0));
  const crfx::HiddenGradient gradient{in_bias.data(), in_to_label.data(), in_constant.data()};
  nb::gil_scoped_release released;
  crfx::hidden_gradient(units, inputs.data(), slopes.data(), input_gradient.data(), gradient,
                        n_rows, n_threads);
}

class HiddenSweeps {
 public:
  HiddenSweeps(const BoundChains& chains, MaybeMatrix<const float> dense,
               MaybeVector1<const int64_t> starts, MaybeVector1<const int32_t> indices,
               MaybeVector1<const float> values, int64_t n_features, int64_t n_hidden,
               const std::string& activation, bool has_skip)
      : chains_(chains), dense_(dense), starts_(starts), indices_(indices), values_(values) {
    data_.chains = chains_.view;
    data_.dense = dense_ ? dense_->data() : nullptr;
    data_.sparse = {data_of(starts_), data_of(indices_), data_of(values_), 0};
    data_.n_features = n_features;
    data_.n_hidden = n_hidden;
    data_.activation = activation_of(activation);
    data_.has_skip = has_skip;
  }

  int64_t size() const { return data_.size(); }

  void catch_up(Vector1<float> values, Vector1<double> sum, Vector1<double> product_then,
                Vector1<double> steps_then, double product, double steps) const {
    crfx::HiddenParameters at{
        values.data(), sum.data(), product_then.data(), steps_then.data(), product, steps, 0};
    nb::gil_scoped_release released;
    crfx::hidden_catch_up(data_, at);
  }

  std::tuple<double, double, int64_t> run(const BoundSteps& asked, Vector1<const double> rates,
                                          double dropout, uint64_t seed, Vector1<float> values,
                                          Vector1<double> sum, Vector1<double> product_then,
                                          Vector1<double> steps_then, double product, double steps,
                                          int64_t n_counted) const {
    const double* r = rates.data();
    const crfx::HiddenRates own{r[0], r[1], r[2], r[3], r[4], r[5], r[6]};
    crfx::HiddenParameters at{values.data(),     sum.data(), product_then.data(),
                              steps_then.data(), product,    steps,
                              n_counted};
    nb::gil_scoped_release released;
    crfx::hidden_sweep(data_, asked.view, own, {dropout, seed}, at);
    return {at.product, at.steps, at.n_counted};
  }

 private:
  BoundChains chains_;
  MaybeMatrix<const float> dense_;
  MaybeVector1<const int64_t> starts_;
  MaybeVector1<const int32_t> indices_;
  MaybeVector1<const float> values_;
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
  nb::class_<HiddenSweeps>(m, "HiddenSweeps", "Chains whose nodes are scored by hidden units.")
      .def(nb::init<const BoundChains&, MaybeMatrix<const float>, MaybeVector1<const int64_t>,
                    MaybeVector1<const int32_t>, MaybeVector1<const float>, int64_t, int64_t,
                    const std::string&, bool>(),
           "chains"_a, "dense"_a.noconvert().none(), "starts"_a.noconvert().none(),
           "indices"_a.noconvert().none(), "values"_a.noconvert().none(), nb::kw_only(),
           "n_features"_a, "n_hidden"_a, "activation"_a, "has_skip"_a)
      .def_prop_ro("size", &HiddenSweeps::size, "How many parameters there are.")
      .def("catch_up", &HiddenSweeps::catch_up, nb::kw_only(), "values"_a.noconvert(),
           "sum"_a.noconvert(), "product_then"_a.noconvert(), "steps_then"_a.noconvert(),
           "product"_a, "steps"_a, "Brings all parameters to the last step.")
      .def("run", &HiddenSweeps::run, "asked"_a, nb::kw_only(), "rates"_a.noconvert(), "dropout"_a,
           "seed"_a, "values"_a.noconvert(), "sum"_a.noconvert(), "product_then"_a.noconvert(),
           "steps_then"_a.noconvert(), "product"_a, "steps"_a, "n_counted"_a,
           "Sweeps once over the instances in order, changing the arrays of parameters; returns "
           "what product, steps and n_counted then are.");
}
