// What thermocline needs of a compiled Stan model. stanc's C++ comes before this text; MODEL is its class.
//
// Data sets are told apart by a key of eight bytes, which is an input of every call: two data sets share one
// XLA program. The C interface of XLA's FFI is used, which costs next to nothing to compile.

#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>

#include <stan/io/json/json_data.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "xla/ffi/api/c_api.h"

namespace thermocline {

using Key = uint64_t;

std::map<Key, std::unique_ptr<MODEL>>& instances() {
  static std::map<Key, std::unique_ptr<MODEL>> all;
  return all;
}

std::mutex& guard() {
  static std::mutex one;
  return one;
}

const MODEL* find(Key key) {
  std::lock_guard<std::mutex> lock(guard());
  auto place = instances().find(key);
  return place == instances().end() ? nullptr : place->second.get();
}

void say(const std::string& text, char* room, size_t size) {
  std::strncpy(room, text.c_str(), size - 1);
  room[size - 1] = 0;
}

int64_t size_of(const XLA_FFI_Buffer* buffer) {
  int64_t size = 1;
  for (int64_t i = 0; i < buffer->rank; ++i) size *= buffer->dims[i];
  return size;
}

double read(const XLA_FFI_Buffer* buffer, int64_t i) {
  return buffer->dtype == XLA_FFI_DataType_F64 ? static_cast<double*>(buffer->data)[i]
                                               : static_cast<float*>(buffer->data)[i];
}

void write(XLA_FFI_Buffer* buffer, int64_t i, double value) {
  if (buffer->dtype == XLA_FFI_DataType_F64)
    static_cast<double*>(buffer->data)[i] = value;
  else
    static_cast<float*>(buffer->data)[i] = static_cast<float>(value);
}

XLA_FFI_Error* fail(XLA_FFI_CallFrame* frame, const std::string& message) {
  XLA_FFI_Error_Create_Args args;
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.extension_start = nullptr;
  args.message = message.c_str();
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame->api->XLA_FFI_Error_Create(&args);
}

// XLA asks every handler once which version of the interface it was compiled against.
bool answers_version(XLA_FFI_CallFrame* frame) {
  auto* extension = frame->extension_start;
  if (extension == nullptr || extension->type != XLA_FFI_Extension_Metadata) return false;
  auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(extension)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

// Calls `one(row)` for each row, over all cores. A model that waits for tasks of its own, in `reduce_sum`, must not be
// handed another row meanwhile: both would write on one tape.
template <typename One>
void side_by_side(int64_t rows, One one) {
  tbb::parallel_for(int64_t{0}, rows, [&](int64_t row) {
    static thread_local stan::math::ChainableStack stack;  // Stan's tape is one a thread
    tbb::this_task_arena::isolate([&] { one(row); });
  });
}

// Calls `one(model, row, position)` for each row of the last axis of the second argument.
template <typename One>
XLA_FFI_Error* each_row(XLA_FFI_CallFrame* frame, One one) {
  if (answers_version(frame)) return nullptr;
  auto* keys = static_cast<XLA_FFI_Buffer*>(frame->args.args[0]);
  auto* positions = static_cast<XLA_FFI_Buffer*>(frame->args.args[1]);
  int64_t size = positions->dims[positions->rank - 1], rows = size_of(keys) / 2;
  std::vector<const MODEL*> models(rows);
  for (int64_t row = 0; row < rows; ++row) {
    Key key;
    std::memcpy(&key, static_cast<uint32_t*>(keys->data) + 2 * row, sizeof key);
    models[row] = find(key);
    if (models[row] == nullptr) return fail(frame, "no data set of this key was given to this Stan model");
  }
  side_by_side(rows, [&](int64_t row) {
    std::vector<double> position(size);
    for (int64_t i = 0; i < size; ++i) position[i] = read(positions, row * size + i);
    one(*models[row], row, position);
  });
  return nullptr;
}

// Log density with every constant and the Jacobian, and its gradient; -inf where Stan rejects.
double evaluate(const MODEL& model, std::vector<double>& position, std::vector<double>& gradient) {
  std::vector<int> none;
  try {
    return stan::model::log_prob_grad<false, true>(model, position, none, gradient, nullptr);
  } catch (const std::exception&) {
    gradient.assign(position.size(), 0.0);
    return -std::numeric_limits<double>::infinity();
  }
}

// Of the random numbers of generated quantities: one draw has always the same, another draw others.
unsigned int seed_of(const std::vector<double>& position) {
  auto* bytes = reinterpret_cast<const char*>(position.data());
  return std::hash<std::string_view>{}({bytes, position.size() * sizeof(double)});
}

}  // namespace thermocline

extern "C" {

// Makes the model with these data, under this key; returns 0, or 1 with a message.
int thermocline_create(const char* json, uint64_t key, char* message, size_t size) {
  static thread_local stan::math::ChainableStack stack;
  try {
    std::stringstream text(json), messages;
    stan::json::json_data data(text);
    std::unique_ptr<MODEL> made(new MODEL(data, 0, &messages));
    std::lock_guard<std::mutex> lock(thermocline::guard());
    thermocline::instances()[key] = std::move(made);
    return 0;
  } catch (const std::exception& error) {
    thermocline::say(error.what(), message, size);
    return 1;
  }
}

// Names of all scalars, a line each: unconstrained, or constrained with transformed parameters and generated quantities.
// The text lives until the next call of the thread.
const char* thermocline_names(uint64_t key, int is_constrained) {
  static thread_local std::string text;
  std::vector<std::string> names;
  if (is_constrained)
    thermocline::find(key)->constrained_param_names(names, true, true);
  else
    thermocline::find(key)->unconstrained_param_names(names, false, false);
  text.clear();
  for (const auto& name : names) text += name + "\n";
  return text.c_str();
}

// Log densities and gradients of rows of doubles, one after the other.
void thermocline_rows(uint64_t key, const double* rows, int64_t number, int64_t size, double* values, double* slopes) {
  const MODEL& model = *thermocline::find(key);
  thermocline::side_by_side(number, [&](int64_t row) {
    std::vector<double> position(rows + row * size, rows + (row + 1) * size), gradient(size);
    values[row] = thermocline::evaluate(model, position, gradient);
    std::copy(gradient.begin(), gradient.end(), slopes + row * size);
  });
}

// The same as XLA asks for it.
XLA_FFI_Error* thermocline_log_density(XLA_FFI_CallFrame* frame) {
  return thermocline::each_row(frame, [&](const MODEL& model, int64_t row, std::vector<double>& position) {
    auto* values = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
    auto* gradients = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[1]);
    std::vector<double> gradient(position.size());
    thermocline::write(values, row, thermocline::evaluate(model, position, gradient));
    for (size_t i = 0; i < gradient.size(); ++i) thermocline::write(gradients, row * gradient.size() + i, gradient[i]);
  });
}

// Parameters, transformed parameters and generated quantities; NaN from where Stan stops computing them.
XLA_FFI_Error* thermocline_constrain(XLA_FFI_CallFrame* frame) {
  return thermocline::each_row(frame, [&](const MODEL& model, int64_t row, std::vector<double>& position) {
    auto* outputs = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
    size_t size = outputs->dims[outputs->rank - 1];
    std::vector<double> values;
    std::vector<int> none;
    auto random = stan::services::util::create_rng(thermocline::seed_of(position), 1);
    try {
      model.write_array(random, position, none, values, true, true, nullptr);
    } catch (const std::exception&) {  // then `values` are those that were computed before
    }
    values.resize(size, std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < size; ++i) thermocline::write(outputs, row * size + i, values[i]);
  });
}
}
