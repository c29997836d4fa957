// Reads features as Python users write them, dicts and strings, into the arrays of a sparse matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "crfx/names.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// The error of a feature, without its place, which the caller adds.
struct BadFeature {
  std::string what;
};

constexpr size_t kLongestShown = 80;

// An object as Python writes it, for a message: on one line, shortened if it is long.
std::string shown(PyObject* object) {
  const nb::object written = nb::steal(PyObject_Repr(object));
  Py_ssize_t size = 0;
  const char* letters =
      written.is_valid() ? PyUnicode_AsUTF8AndSize(written.ptr(), &size) : nullptr;
  if (!letters) {  // numbers of thousands of digits have no text
    PyErr_Clear();
    return std::string("a ") + Py_TYPE(object)->tp_name;
  }
  std::string text;
  for (const char letter : std::string_view(letters, static_cast<size_t>(size))) {
    const bool is_space = letter == ' ' || letter == '\n';
    if (!is_space || (!text.empty() && text.back() != ' ')) text += is_space ? ' ' : letter;
  }
  if (text.size() <= kLongestShown) return text;
  size_t end = kLongestShown;
  while ((text[end] & 0xC0) == 0x80) --end;  // not in the middle of a character
  return text.substr(0, end) + "...";
}

std::string_view text_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* letters = PyUnicode_AsUTF8AndSize(text, &size);
  if (!letters) {
    PyErr_Clear();
    throw BadFeature{"the text " + shown(text) +
                     " has half a character (a lone surrogate), which UTF-8 cannot hold"};
  }
  return {letters, static_cast<size_t>(size)};
}

// Runs a function that may meet a bad feature, and adds its place to the error.
template <class Read>
void with_place(size_t instance, size_t position, Read read) {
  try {
    read();
  } catch (const BadFeature& error) {
    throw nb::value_error(("instance " + std::to_string(instance) + ", position " +
                           std::to_string(position) + ": " + error.what)
                              .c_str());
  }
}

// Collects the rows of a sparse matrix. Values are kept only if one of them is not 1.
class Rows {
 public:
  Rows(crfx::NameTable& names, uint64_t n_hashed, bool grows)
      : names_(names), n_hashed_(n_hashed), grows_(grows) {}

  void add(const crfx::Name& name, double value) {
    const int32_t number = number_of(name);
    if (number == crfx::NameTable::kUnknown) {
      ++unknown_;
      return;
    }
    if (value != 1 && values_.empty()) values_.assign(indices_.size(), 1.0f);
    indices_.push_back(number);
    if (value != 1 || !values_.empty()) values_.push_back(static_cast<float>(value));
  }
  void end_row() { starts_.push_back(static_cast<int64_t>(indices_.size())); }
  size_t n_rows() const { return starts_.size() - 1; }

  // (lengths, starts, indices, values or None, unknown features)
  nb::tuple arrays(std::vector<int64_t>&& lengths) {
    nb::object values = nb::none();
    if (!values_.empty()) values = nb::cast(to_array(std::move(values_)));
    return nb::make_tuple(to_array(std::move(lengths)), to_array(std::move(starts_)),
                          to_array(std::move(indices_)), values, unknown_);
  }

 private:
  int32_t number_of(const crfx::Name& name) {
    if (n_hashed_ > 0) return static_cast<int32_t>(name.hash() % n_hashed_);
    return grows_ ? names_.find_or_add(name) : names_.find(name);
  }

  crfx::NameTable& names_;
  uint64_t n_hashed_;
  bool grows_;
  std::vector<int64_t> starts_{0};
  std::vector<int32_t> indices_;
  std::vector<float> values_;
  int64_t unknown_ = 0;
};

std::string quoted(const crfx::Name& name) {
  std::string text{'\''};
  text += name.key;
  if (name.joined) (text += ':') += name.value;
  return text += '\'';
}

double number_of(PyObject* value, const crfx::Name& name) {
  const double number = PyFloat_AsDouble(value);
  if (number == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw BadFeature{"the feature " + quoted(name) + " is " + shown(value) +
                     ": it must be text, a number, a truth value, a list of texts or of numbers, "
                     "or a dict"};
  }
  if (!std::isfinite(number))
    throw BadFeature{"the feature " + quoted(name) + " is " + shown(value) + ": it must be finite"};
  return number;
}

constexpr size_t kLongestPrefix = 2000;  // each level of nested dicts adds to it

void read_dict(PyObject* features, const std::string& prefix, Rows& rows);

// Texts are features of their own, numbers (a vector) are the values of key:0, key:1, ...
void read_list(std::string_view key, nb::handle values, Rows& rows) {
  size_t place = 0;
  bool are_texts = false;
  for (nb::handle each : values) {
    const bool is_text = PyUnicode_Check(each.ptr());
    if (place == 0) are_texts = is_text;
    if (is_text != are_texts)
      throw BadFeature{"the feature " + quoted({key, {}, false}) + " holds " + shown(each.ptr()) +
                       (is_text ? " among numbers" : " among texts") +
                       ": a list holds texts, or numbers, not both"};
    if (!is_text && PyAnySet_Check(values.ptr()))
      throw BadFeature{"the feature " + quoted({key, {}, false}) + " holds " + shown(each.ptr()) +
                       " in a set, which has no order: sets hold texts"};
    if (is_text) {
      rows.add({key, text_of(each.ptr()), true}, 1);
    } else {
      const std::string number = std::to_string(place);
      const crfx::Name name{key, number, true};
      rows.add(name, number_of(each.ptr(), name));
    }
    ++place;
  }
}

// An array of one axis (NumPy's, a series of pandas) as a list; nothing for other objects.
nb::object listed_array(PyObject* value, std::string_view key) {
  const nb::handle array(value);
  if (!PySequence_Check(value) || !nb::hasattr(array, "ndim") || !nb::hasattr(array, "tolist"))
    return {};  // excludes numbers at once, those of NumPy too
  const auto n_axes = nb::cast<int64_t>(array.attr("ndim"));
  if (n_axes > 1)
    throw BadFeature{"the feature " + quoted({key, {}, false}) + " is an array of " +
                     std::to_string(n_axes) + " axes: a vector has one"};
  return n_axes == 1 ? nb::object(array.attr("tolist")()) : nb::object();
}

// One entry of a dict: a text is a feature of its own, a number is the value of the feature key.
void read_entry(std::string_view key, PyObject* value, Rows& rows) {
  if (PyUnicode_Check(value)) {
    rows.add({key, text_of(value), true}, 1);
  } else if (PyDict_Check(value)) {
    read_dict(value, std::string(key) + ':', rows);
  } else if (PyList_Check(value) || PyTuple_Check(value) || PyAnySet_Check(value)) {
    read_list(key, value, rows);
  } else if (const nb::object listed = listed_array(value, key); listed.is_valid()) {
    read_list(key, listed, rows);
  } else {
    const crfx::Name name{key, {}, false};
    rows.add(name, number_of(value, name));
  }
}

void read_dict(PyObject* features, const std::string& prefix, Rows& rows) {
  if (prefix.size() > kLongestPrefix)
    throw BadFeature{"dicts within dicts go too deep: " + prefix.substr(0, 40) + "..."};
  PyObject *next_key = nullptr, *next_value = nullptr;
  Py_ssize_t place = 0;
  std::string longer;
  while (PyDict_Next(features, &place, &next_key, &next_value)) {
    // Owned: reading a number may run code of the user, which may change the dict.
    const nb::object key = nb::borrow(next_key), value = nb::borrow(next_value);
    if (!PyUnicode_Check(key.ptr()))
      throw BadFeature{"a feature has the name " + shown(key.ptr()) + ": names are texts"};
    std::string_view name = text_of(key.ptr());
    if (!prefix.empty()) {
      longer = prefix;
      longer += name;
      name = longer;
    }
    read_entry(name, value.ptr(), rows);
  }
}

void read_position(PyObject* position, Rows& rows) {
  if (PyDict_Check(position)) {
    read_dict(position, {}, rows);
  } else if (PyList_Check(position) || PyTuple_Check(position) || PyAnySet_Check(position)) {
    for (nb::handle each : nb::handle(position)) {
      if (!PyUnicode_Check(each.ptr()))
        throw BadFeature{"its features hold " + shown(each.ptr()) + ": they must be texts"};
      rows.add({text_of(each.ptr()), {}, false}, 1);
    }
  } else if (PyUnicode_Check(position)) {
    rows.add({text_of(position), {}, false}, 1);
  } else {
    throw BadFeature{"its features are " + shown(position) +
                     ": pass a dict, a list of texts, or one text"};
  }
  rows.end_row();
}

// A line of a template: the name of its features, and their columns and offsets.
struct Line {
  std::string prefix;
  std::vector<std::pair<int64_t, int64_t>> terms;  // column, offset
};

std::vector<Line> read_lines(const nb::list& lines) {
  std::vector<Line> found;
  for (nb::handle line : lines) {
    Line own{nb::cast<std::string>(line[0]), {}};
    for (nb::handle term : line[1])
      own.terms.emplace_back(nb::cast<int64_t>(term[0]), nb::cast<int64_t>(term[1]));
    found.push_back(std::move(own));
  }
  return found;
}

// Columns of one instance, lists of equal length that hold texts or None.
class ColumnsOfTexts {
 public:
  explicit ColumnsOfTexts(nb::handle columns) {
    for (nb::handle column : columns) {
      if (!PyList_Check(column.ptr())) throw nb::value_error("a column must be a list");
      columns_.push_back(nb::borrow(column));
      if (PyList_GET_SIZE(column.ptr()) != PyList_GET_SIZE(columns_[0].ptr()))
        throw nb::value_error("columns of one instance must be equally long");
    }
    length_ = columns_.empty() ? 0 : PyList_GET_SIZE(columns_[0].ptr());
  }
  size_t count() const { return columns_.size(); }
  int64_t length() const { return length_; }
  // False if the value is None.
  bool append(int64_t column, int64_t position, std::string& text) const {
    if (position < 0 || position >= length_) {
      text += position < 0 ? "<start>" : "<end>";
      return true;
    }
    PyObject* value = PyList_GET_ITEM(columns_[static_cast<size_t>(column)].ptr(), position);
    if (value == Py_None) return false;
    if (!PyUnicode_Check(value)) throw nb::value_error("columns hold texts or None");
    text += text_of(value);
    return true;
  }

 private:
  std::vector<nb::object> columns_;
  Py_ssize_t length_ = 0;
};

void read_line(const Line& line, const ColumnsOfTexts& columns, int64_t position, std::string& text,
               Rows& rows) {
  text = line.prefix;
  for (size_t k = 0; k < line.terms.size(); ++k) {
    if (k > 0) text += '|';
    const auto [column, offset] = line.terms[k];
    if (!columns.append(column, position + offset, text)) return;
  }
  rows.add({text, {}, false}, 1);
}

// An instance is a list of positions: a dict or a text would be read by its keys or its letters.
void check_instance(nb::handle instance, size_t number) {
  if (!nb::hasattr(instance, "__iter__"))
    throw nb::value_error(("instance " + std::to_string(number) + ": X is " +
                           shown(instance.ptr()) + ", not a list of positions")
                              .c_str());
  const bool is_dict = PyDict_Check(instance.ptr());
  if (!is_dict && !PyUnicode_Check(instance.ptr())) return;
  throw nb::value_error(("instance " + std::to_string(number) + ": X is one " +
                         (is_dict ? "dict" : "str") +
                         ": an instance is a list of positions; wrap a single instance in a list, "
                         "[X]")
                            .c_str());
}

class FeatureNames {
 public:
  FeatureNames(const nb::list& names, uint32_t n_hashed) : n_hashed_(n_hashed) {
    try {
      for (nb::handle name : names) table_.find_or_add({text_of(name.ptr()), {}, false});
    } catch (const BadFeature& error) {
      throw nb::value_error(error.what.c_str());
    }
  }
  int64_t size() const { return table_.size(); }
  nb::list names() const {
    nb::list found;
    for (int64_t k = 0; k < table_.size(); ++k) {
      const std::string_view name = table_.name(k);
      found.append(nb::steal(
          PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), nullptr)));
    }
    return found;
  }
  // Instances, each a sequence of positions, from any iterable: (lengths, starts, indices, values).
  nb::tuple encode(const nb::iterable& instances, bool grows) {
    Rows rows(table_, n_hashed_, grows);
    std::vector<int64_t> lengths;
    for (nb::handle instance : instances) {
      check_instance(instance, lengths.size());
      const size_t before = rows.n_rows();
      for (nb::handle position : instance) {
        with_place(lengths.size(), rows.n_rows() - before,
                   [&] { read_position(position.ptr(), rows); });
      }
      lengths.push_back(static_cast<int64_t>(rows.n_rows() - before));
    }
    return rows.arrays(std::move(lengths));
  }
  // Instances, each a list of columns, through the lines of a template.
  nb::tuple encode_template(const nb::iterable& instances, const nb::list& template_lines,
                            bool grows) {
    const std::vector<Line> lines = read_lines(template_lines);
    Rows rows(table_, n_hashed_, grows);
    std::vector<int64_t> lengths;
    std::string text;
    for (nb::handle instance : instances) {
      const ColumnsOfTexts columns(instance);
      for (const Line& line : lines)
        for (const auto& term : line.terms)
          if (term.first < 0 || term.first >= static_cast<int64_t>(columns.count()))
            throw nb::value_error("a line of the template uses a column that does not exist");
      for (int64_t position = 0; position < columns.length(); ++position) {
        with_place(lengths.size(), static_cast<size_t>(position), [&] {
          for (const Line& line : lines) read_line(line, columns, position, text, rows);
        });
        rows.end_row();
      }
      lengths.push_back(columns.length());
    }
    return rows.arrays(std::move(lengths));
  }

 private:
  crfx::NameTable table_;
  uint32_t n_hashed_;
};

}  // namespace

void bind_features(nb::module_& m) {
  nb::class_<FeatureNames>(m, "FeatureNames",
                           "Numbers the names of features; by their hash, where n_hashed is not 0.")
      .def(nb::init<nb::list, uint32_t>(), "names"_a, "n_hashed"_a = 0,
           nb::sig("def __init__(self, names: list[str], n_hashed: int = 0) -> None"))
      .def("__len__", &FeatureNames::size)
      .def("names", &FeatureNames::names, nb::sig("def names(self) -> list[str]"),
           "All names, in the order of their numbers.")
      .def("encode", &FeatureNames::encode, "instances"_a, "grows"_a,
           nb::sig("def encode(self, instances: object, grows: bool) -> "
                   "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], "
                   "NDArray[numpy.float32] | None, int]"),
           "(lengths, starts, indices, values or None, number of unknown features).")
      .def("encode_template", &FeatureNames::encode_template, "instances"_a, "lines"_a, "grows"_a,
           nb::sig("def encode_template(self, instances: object, lines: list[tuple[str, "
                   "list[tuple[int, int]]]], grows: bool) -> "
                   "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], "
                   "NDArray[numpy.float32] | None, int]"),
           "As encode; instances are lists of columns, lines (prefix, [(column, offset)]).");
}
