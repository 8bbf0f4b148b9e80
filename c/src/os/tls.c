/* SPDX-License-Identifier: Apache-2.0 */
#include "os/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

struct lk_tls {
  SSL_CTX *context;
  BIO_METHOD *socket;
  const lk_url *url;
};

struct lk_tls_session {
  SSL *ssl;
  bool wants_output;
};

/*
 * A BIO that sends with MSG_NOSIGNAL: OpenSSL's own writes with write(), and a connection that the
 * peer reset would then end a process that has not ignored SIGPIPE.
 */
static int socket_write(BIO *bio, const char *data, int len) {
  int fd = (int)(intptr_t)BIO_get_data(bio);
  ssize_t n = send(fd, data, (size_t)len, MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return (int)n;
}

static int socket_read(BIO *bio, char *buffer, int size) {
  int fd = (int)(intptr_t)BIO_get_data(bio);
  ssize_t n = recv(fd, buffer, (size_t)size, 0);
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return (int)n;
}

static long socket_ctrl(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static const char *reason(void) {
  unsigned long code = ERR_peek_last_error();
  const char *text = code ? ERR_reason_error_string(code) : NULL;
  return text ? text : "no reason given";
}

/* OpenSSL would ask the terminal for the passphrase, and wait there. */
static int no_passphrase(char *buffer, int size, int writes, void *asked) {
  (void)buffer, (void)size, (void)writes;
  *(bool *)asked = true;
  return -1;
}

static lk_status load_key(SSL_CTX *context, const lk_url *url, lk_error *error) {
  bool asked = false;
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
  bool loaded = SSL_CTX_use_PrivateKey_file(context, url->key, SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
  if (asked) {
    return lk_fail(error, LK_TLS, "key %s is encrypted: give one without a passphrase", url->key);
  }
  if (!loaded) return lk_fail(error, LK_TLS, "key %s: %s", url->key, reason());
  if (SSL_CTX_check_private_key(context) == 1) return LK_OK;
  return lk_fail(error, LK_TLS, "key %s does not belong to the certificate", url->key);
}

/* OpenSSL says "system lib" of it. */
static lk_status check_file(const char *what, const char *path, lk_error *error) {
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (path && fd < 0) return lk_fail(error, LK_TLS, "%s %s: %s", what, path, strerror(errno));
  if (path) close(fd);
  return LK_OK;
}

static lk_status check_files(const lk_url *url, lk_error *error) {
  lk_status status = check_file("cacert", url->cacert, error);
  if (status == LK_OK) status = check_file("cert", url->cert, error);
  return status == LK_OK ? check_file("key", url->key, error) : status;
}

static lk_status load_certificates(SSL_CTX *context, const lk_url *url, lk_error *error) {
  if (url->cacert) {
    if (SSL_CTX_load_verify_locations(context, url->cacert, NULL) != 1) {
      return lk_fail(error, LK_TLS, "cacert %s: %s", url->cacert, reason());
    }
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return lk_fail(error, LK_TLS, "the system's certificates: %s", reason());
  }
  if (url->cert && SSL_CTX_use_certificate_chain_file(context, url->cert) != 1) {
    return lk_fail(error, LK_TLS, "cert %s: %s", url->cert, reason());
  }
  return url->key ? load_key(context, url, error) : LK_OK;
}

lk_status lk_tls_new(const lk_url *url, lk_tls **out, lk_error *error) {
  bool newest = url->tls_min && strcmp(url->tls_min, "1.3") == 0;
  lk_tls *tls = calloc(1, sizeof *tls);
  *out = NULL;
  if (!tls) return lk_fail(error, LK_NOMEM, "out of memory");
  tls->url = url;
  /* An exit() beside threads in here, the keeper's for one, must not take OpenSSL away from them. */
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
  ERR_clear_error();
  tls->context = SSL_CTX_new(TLS_client_method());
  /* Without a number of its own, of which a process has some hundred. */
  tls->socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchkey socket");
  if (!tls->context || !tls->socket) {
    lk_tls_free(tls);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  BIO_meth_set_write(tls->socket, socket_write);
  BIO_meth_set_read(tls->socket, socket_read);
  BIO_meth_set_ctrl(tls->socket, socket_ctrl);
  SSL_CTX_set_min_proto_version(tls->context, newest ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_mode(tls->context,
                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
  /* Replies say their own length, so a connection that just ends cannot pass for a whole one. */
  SSL_CTX_set_options(tls->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  lk_status status = check_files(url, error);
  if (status == LK_OK) status = load_certificates(tls->context, url, error);
  if (status != LK_OK) {
    lk_tls_free(tls);
    return status;
  }
  *out = tls;
  return LK_OK;
}

void lk_tls_free(lk_tls *tls) {
  if (!tls) return;
  SSL_CTX_free(tls->context);
  BIO_meth_free(tls->socket);
  free(tls);
}

/* The certificate must be for this name; an address is looked for among its addresses. The dot of the root, with which
 * a name may end, stands in no certificate, nor is a server told of it (RFC 6066, section 3). */
static bool expect_name(SSL *ssl, const char *name) {
  X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
  char bare[TLSEXT_MAXLEN_host_name + 1];
  const size_t len = strlen(name);
  if (len > 1 && len <= sizeof bare && name[len - 1] == '.') {
    memcpy(bare, name, len - 1);
    bare[len - 1] = '\0';
    name = bare;
  }
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, name) == 1) return true;
  ERR_clear_error();
  return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

lk_status lk_tls_start(lk_tls *tls, const char *host, int fd, lk_tls_session **out,
                       lk_error *error) {
  const char *name = tls->url->sni ? tls->url->sni : host;
  lk_tls_session *session = calloc(1, sizeof *session);
  BIO *bio = BIO_new(tls->socket);
  SSL *ssl = SSL_new(tls->context);
  *out = NULL;
  ERR_clear_error();
  bool memory = session && bio && ssl;
  if (!memory || !expect_name(ssl, name)) {
    free(session);
    BIO_free(bio);
    SSL_free(ssl);
    if (!memory) return lk_fail(error, LK_NOMEM, "out of memory");
    return lk_fail(error, LK_TLS, "TLS for %s: %s", name, reason());
  }
  BIO_set_data(bio, (void *)(intptr_t)fd);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_connect_state(ssl);
  session->ssl = ssl;
  *out = session;
  return LK_OK;
}

void lk_tls_end(lk_tls_session *session) {
  if (!session) return;
  SSL_free(session->ssl);
  free(session);
}

/* Half of a hand-shake arrived: so the server says, or so it looks from here. */
static bool was_cut(void) {
  unsigned long code = ERR_peek_last_error();
  return ERR_GET_LIB(code) == ERR_LIB_SSL &&
         (ERR_GET_REASON(code) == SSL_R_TLSV1_ALERT_DECODE_ERROR ||
          ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
}

static ssize_t tls_outcome(lk_tls_session *session, int result, lk_error *error) {
  if (result > 0) return result;
  int saved = errno;
  long verified = SSL_get_verify_result(session->ssl);
  switch (SSL_get_error(session->ssl, result)) {
  case SSL_ERROR_WANT_READ: session->wants_output = false; return 0;
  case SSL_ERROR_WANT_WRITE: session->wants_output = true; return 0;
  case SSL_ERROR_ZERO_RETURN:
    lk_fail(error, LK_UNREACHABLE, "the server closed the connection");
    return -1;
  case SSL_ERROR_SYSCALL:
    if (ERR_peek_last_error() == 0) {
      lk_fail(error, LK_UNREACHABLE, "%s",
              saved && result < 0 ? strerror(saved) : "the server closed the connection");
      return -1;
    }
    break;
  default: break;
  }
  if (was_cut()) {
    lk_fail(error, LK_UNREACHABLE, "the connection ended within the TLS hand-shake");
  } else if (verified != X509_V_OK) {
    lk_fail(error, LK_TLS, "the server's certificate was refused: %s",
            X509_verify_cert_error_string(verified));
  } else {
    lk_fail(error, LK_TLS, "TLS failed: %s", reason());
  }
  return -1;
}

ssize_t lk_tls_send(lk_tls_session *session, const char *data, size_t len, lk_error *error) {
  ERR_clear_error();
  errno = 0;
  session->wants_output = true;
  return tls_outcome(session, SSL_write(session->ssl, data, len > 1 << 20 ? 1 << 20 : (int)len),
                     error);
}

ssize_t lk_tls_recv(lk_tls_session *session, char *buffer, size_t size, lk_error *error) {
  bool wanted_output = session->wants_output;
  ERR_clear_error();
  errno = 0;
  ssize_t n = tls_outcome(session, SSL_read(session->ssl, buffer, (int)size), error);
  if (SSL_is_init_finished(session->ssl)) session->wants_output = wanted_output;
  return n;
}

bool lk_tls_wants_output(const lk_tls_session *session) { return session->wants_output; }

bool lk_tls_has_input(const lk_tls_session *session) { return SSL_pending(session->ssl) > 0; }
