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

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace d2l {

class Sha256 {
 public:
  Sha256();
  void Update(std::string_view bytes);
  // Call it once.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_SHA256_H_
