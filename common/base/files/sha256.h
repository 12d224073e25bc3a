// Sha256: the hash of bytes that come in pieces.
//
//   Sha256 hash;
//   hash.Update("ab");
//   hash.Update("c");
//   std::string text = hash.Hex();  // "ba7816bf…", 64 digits
//
// Thread-safe for different objects.

#ifndef D2L_COMMON_BASE_FILES_SHA256_H_
#define D2L_COMMON_BASE_FILES_SHA256_H_

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace d2l {

class Sha256 {
 public:
  Sha256() { Check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr)); }
  void Update(std::string_view bytes) {
    Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  // Call it once.
  std::string Hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    Check(EVP_DigestFinal_ex(context_.get(), digest, &size));
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest), size));
  }

 private:
  static void Check(int succeeded) {
    if (succeeded != 1) throw std::runtime_error("OpenSSL has no SHA-256");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{
      EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_SHA256_H_
