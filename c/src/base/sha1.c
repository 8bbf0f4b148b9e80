/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

bool lk_sha1(const char *bytes, size_t len, char out[LK_SHA1_SIZE]) {
  static const char hex[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); /* see lk_tls_new() */
  if (EVP_Digest(bytes, len, digest, &size, EVP_sha1(), NULL) != 1 || size != 20) return false;
  for (unsigned i = 0; i < size; i++) {
    out[2 * i] = hex[digest[i] >> 4];
    out[2 * i + 1] = hex[digest[i] & 15];
  }
  out[40] = '\0';
  return true;
}
