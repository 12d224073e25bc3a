#include "common/base/files/sha256.h"

#include <openssl/evp.h>

#include <stdexcept>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace d2l {
namespace {

void Check(int succeeded) {
  if (succeeded != 1) throw std::runtime_error("OpenSSL has no SHA-256");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  Check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::Update(std::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Check(EVP_DigestFinal_ex(context_.get(), digest, &size));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace d2l
