// Fields: writes the fields of a primitive as text, by name, or reads them from
// text.
//
//   double alpha = 0.5, beta = 1;
//   std::vector<Attribute> text;
//   Fields write("axpby", &text);
//   write("alpha", alpha)("beta", beta);  // alpha 0.5, beta 1.0
//   Fields read("axpby", text);
//   read("alpha", beta)("beta", alpha);   // so they are exchanged
//
// A primitive passes its fields to both in one function, Visit: attributes()
// writes them, MakePrimitive reads them. Errors, of reading only:
// std::invalid_argument for a text that is missing or not of the field's type.

#ifndef D2L_COMMON_OPS_PRIMITIVE_FIELDS_H_
#define D2L_COMMON_OPS_PRIMITIVE_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ops/primitive/primitive.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"

namespace d2l {

class Fields {
 public:
  // Writes to `attributes`.
  Fields(const char* operation, std::vector<Attribute>* attributes)
      : operation_(operation), written_(attributes) {}
  // Reads `attributes`, in any order.
  Fields(const char* operation, std::vector<Attribute> attributes)
      : operation_(operation), left_(std::move(attributes)) {}

  // The field of that name.
  Fields& operator()(const char* name, bool& field);
  Fields& operator()(const char* name, int& field);
  Fields& operator()(const char* name, std::int64_t& field);
  Fields& operator()(const char* name, double& field);
  Fields& operator()(const char* name, Scalar& field);
  Fields& operator()(const char* name, Shape& field);
  // Dimensions: none stands for all.
  Fields& operator()(const char* name, std::vector<int>& field);
  // "shape", "dtype" and "device".
  Fields& operator()(ValueSpec& field);
  // An optional field. has: whether it is present, for writing. Returns that,
  // or, when reading, whether the text has it.
  bool Has(const char* name, bool has) const;
  Fields& operator()(const char* name, std::optional<Scalar>& field);

  // Throws std::invalid_argument unless all attributes have been read.
  void CheckNoneLeft() const;
  const char* operation() const { return operation_; }

 private:
  Fields& Write(const char* name, std::string text);
  // Removes and returns the text to read.
  std::string Take(const char* name);
  // wrong: what is wrong with the text, if there is no value.
  template <typename T>
  Fields& Set(const char* name, T& field, const std::optional<T>& value,
              const char* wrong);
  [[noreturn]] void Throw(std::string_view name, const char* what) const;

  const char* const operation_;
  std::vector<Attribute>* const written_ = nullptr;
  std::vector<Attribute> left_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_FIELDS_H_
