/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No message repeats any text of the URL but the name of an unknown parameter, and that only where
 * no '@' stands behind the host: a mistyped password can end up in every part.
 */
#include "base/url.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/status.h"

enum { DEFAULT_PORT = 6379, SENTINEL_PORT = 26379, DURATION_MAX_MS = 60000 };

/* A piece of the URL's text. */
typedef struct span {
  const char *at;
  size_t len;
} span;

static span span_until(const char *at, const char *stops) { return (span){at, strcspn(at, stops)}; }

static bool span_is(span s, const char *text) {
  return strlen(text) == s.len && memcmp(s.at, text, s.len) == 0;
}

static bool starts_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The byte that the %XX at `s` stands for; 0 if it is none, or NUL. */
static char decode_byte(span s) {
  int high = s.len >= 3 ? hex_digit(s.at[1]) : -1;
  int low = s.len >= 3 ? hex_digit(s.at[2]) : -1;
  return high >= 0 && low >= 0 ? (char)(high * 16 + low) : '\0';
}

/* Copies `s` decoded; `part` names it in messages. An empty part leaves *out as it is: NULL. */
static lk_status decode(span s, const char *part, char **out, lk_error *error) {
  if (s.len == 0) return LK_OK;
  char *text = malloc(s.len + 1);
  if (!text) return lk_fail(error, LK_NOMEM, "out of memory while reading the URL");
  *out = text;
  *text = '\0';
  for (const char *end = s.at + s.len; s.at < end; s.at++) {
    char c = *s.at;
    if (c == '%') {
      c = decode_byte((span){s.at, (size_t)(end - s.at)});
      if (c == '\0')
        return lk_fail(error, LK_URL,
                       "URL, %s: a '%%' must be followed by two hexadecimal digits other than 00; "
                       "write %%25 for '%%' itself",
                       part);
      s.at += 2;
    }
    *text++ = c;
    *text = '\0';
  }
  return LK_OK;
}

static lk_status parse_integer(span s, int min, int max, const char *part, int *out,
                               lk_error *error) {
  int64_t value = 0;
  bool good = s.len > 0;
  for (size_t i = 0; good && i < s.len; i++) {
    good = s.at[i] >= '0' && s.at[i] <= '9' && value <= max;
    value = value * 10 + (s.at[i] - '0');
  }
  if (!good || value < min || value > max)
    return lk_fail(error, LK_URL, "URL, %s: must be a number from %d to %d", part, min, max);
  *out = (int)value;
  return LK_OK;
}

static lk_status parse_user_info(span s, lk_url *out, lk_error *error) {
  const char *colon = memchr(s.at, ':', s.len);
  span user = {s.at, colon ? (size_t)(colon - s.at) : s.len};
  lk_status status = decode(user, "user", &out->user, error);
  if (status == LK_OK && colon) {
    span password = {colon + 1, (size_t)(s.at + s.len - colon) - 1};
    status = decode(password, "password", &out->password, error);
  }
  return status;
}

static bool is_ipv6(const char *text) {
  char address[INET6_ADDRSTRLEN];
  struct in6_addr parsed;
  size_t len = strcspn(text, "%"); /* a zone may follow: fe80::1%eth0 */
  if (len >= sizeof address) return false;
  memcpy(address, text, len);
  address[len] = '\0';
  return inet_pton(AF_INET6, address, &parsed) == 1;
}

static lk_status parse_bracketed_host(span s, lk_url_host *out, span *rest, lk_error *error) {
  const char *end = memchr(s.at, ']', s.len);
  if (!end) return lk_fail(error, LK_URL, "URL, host: the '[' of an IPv6 address is not closed");
  span host = {s.at + 1, (size_t)(end - s.at) - 1};
  *rest = (span){end + 1, s.len - host.len - 2};
  lk_status status = decode(host, "host", &out->host, error);
  if (status == LK_OK && !(out->host && is_ipv6(out->host)))
    status = lk_fail(error, LK_URL, "URL, host: the text in brackets is not an IPv6 address");
  return status;
}

static lk_status parse_plain_host(span s, lk_url_host *out, span *rest, lk_error *error) {
  const char *colon = memchr(s.at, ':', s.len);
  span host = {s.at, colon ? (size_t)(colon - s.at) : s.len};
  *rest = (span){s.at + host.len, s.len - host.len};
  if (host.len == 0) return lk_fail(error, LK_URL, "URL, host: it is missing");
  if (colon && memchr(colon + 1, ':', rest->len - 1))
    return lk_fail(error, LK_URL,
                   "URL, host: more than one ':' (an IPv6 address is written in brackets; user and "
                   "password end with '@')");
  return decode(host, "host", &out->host, error);
}

static lk_status parse_host_port(span s, int default_port, lk_url_host *out, lk_error *error) {
  span port = {0};
  lk_status status = s.len > 0 && s.at[0] == '[' ? parse_bracketed_host(s, out, &port, error)
                                                 : parse_plain_host(s, out, &port, error);
  if (status != LK_OK) return status;
  out->port = default_port;
  if (port.len == 0) return LK_OK;
  if (port.at[0] != ':') return lk_fail(error, LK_URL, "URL, port: a ':' must stand before it");
  return parse_integer((span){port.at + 1, port.len - 1}, 1, 65535, "port", &out->port, error);
}

/* h1:p,h2:p */
static lk_status parse_hosts(span s, lk_url *out, lk_error *error) {
  int default_port = out->kind == LK_URL_SENTINEL ? SENTINEL_PORT : DEFAULT_PORT;
  out->hosts = calloc(LK_URL_HOSTS_MAX, sizeof *out->hosts);
  if (!out->hosts) return lk_fail(error, LK_NOMEM, "out of memory while reading the URL");
  for (bool more = true; more;) {
    const char *comma = memchr(s.at, ',', s.len);
    span one = {s.at, comma ? (size_t)(comma - s.at) : s.len};
    if (out->nhosts == LK_URL_HOSTS_MAX)
      return lk_fail(error, LK_URL, "URL, hosts: more than %d", LK_URL_HOSTS_MAX);
    lk_status status = parse_host_port(one, default_port, &out->hosts[out->nhosts++], error);
    if (status != LK_OK) return status;
    more = comma != NULL;
    if (more) s = (span){comma + 1, s.len - one.len - 1};
  }
  return LK_OK;
}

/* 250ms, 2s, 1m. */
static lk_status parse_duration(const char *text, const char *name, int64_t *out, lk_error *error) {
  size_t digits = strspn(text, "0123456789");
  const char *unit = text + digits;
  int64_t factor = strcmp(unit, "ms") == 0  ? 1
                   : strcmp(unit, "s") == 0 ? 1000
                   : strcmp(unit, "m") == 0 ? 60000
                                            : 0;
  if (digits == 0 || factor == 0)
    return lk_fail(error, LK_URL,
                   "URL, parameter '%s': must be a number with its unit, such as 250ms or 2s",
                   name);
  int64_t value = digits <= 9 ? strtoll(text, NULL, 10) * factor : INT64_MAX;
  if (value < 1 || value > DURATION_MAX_MS)
    return lk_fail(error, LK_URL, "URL, parameter '%s': must be from 1ms to 60s", name);
  *out = value;
  return LK_OK;
}

/* Where the value of each parameter goes; exactly one of the targets is set. */
typedef struct parameter {
  const char *name;
  char **text;
  int64_t *duration;
  int *number;
  bool allowed;
  const char *only_for;
  bool seen;
} parameter;

static lk_status set_parameter(parameter *p, span value, lk_error *error) {
  if (!p->allowed)
    return lk_fail(error, LK_URL, "URL, parameter '%s': only for %s", p->name, p->only_for);
  if (p->seen) return lk_fail(error, LK_URL, "URL, parameter '%s': given twice", p->name);
  p->seen = true;
  if (value.len == 0)
    return lk_fail(error, LK_URL, "URL, parameter '%s': it has no value", p->name);
  char part[32];
  snprintf(part, sizeof part, "parameter '%s'", p->name);
  if (p->number) return parse_integer(value, 0, INT32_MAX, part, p->number, error);
  char *text = NULL;
  lk_status status = decode(value, part, &text, error);
  if (status == LK_OK && p->duration) status = parse_duration(text, p->name, p->duration, error);
  if (p->text) {
    *p->text = text;
    return status;
  }
  free(text);
  return status;
}

static lk_status refuse_parameter(span name, lk_error *error) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  if (name.len == 0 || name.len > 32 || strspn(name.at, plain) < name.len)
    return lk_fail(error, LK_URL, "URL, parameters: expected name=value, joined by '&'");
  return lk_fail(error, LK_URL, "URL, parameter '%.*s': there is no such parameter", (int)name.len,
                 name.at);
}

static lk_status check_tls_parameters(const lk_url *url, lk_error *error) {
  if (!url->cert != !url->key)
    return lk_fail(error, LK_URL, "URL, parameter '%s': 'cert' and 'key' go together",
                   url->cert ? "cert" : "key");
  if (url->tls_min && strcmp(url->tls_min, "1.2") != 0 && strcmp(url->tls_min, "1.3") != 0)
    return lk_fail(error, LK_URL, "URL, parameter 'tls_min': must be 1.2 or 1.3");
  return LK_OK;
}

static lk_status parse_parameters(const char *at, lk_url *out, lk_error *error) {
  bool on_socket = out->kind == LK_URL_SERVER && !out->host;
  bool by_sentinel = out->kind == LK_URL_SENTINEL;
  parameter known[] = {
      {"cacert", &out->cacert, NULL, NULL, out->tls, "rediss://", false},
      {"cert", &out->cert, NULL, NULL, out->tls, "rediss://", false},
      {"key", &out->key, NULL, NULL, out->tls, "rediss://", false},
      {"sni", &out->sni, NULL, NULL, out->tls, "rediss://", false},
      {"tls_min", &out->tls_min, NULL, NULL, out->tls, "rediss://", false},
      {"connect", NULL, &out->connect_ms, NULL, true, "", false},
      {"command", NULL, &out->command_ms, NULL, true, "", false},
      {"functions", NULL, NULL, &out->functions, true, "", false},
      {"sentinel_user", &out->sentinel_user, NULL, NULL, by_sentinel, "redis-sentinel://", false},
      {"sentinel_password", &out->sentinel_password, NULL, NULL, by_sentinel, "redis-sentinel://",
       false},
      {"db", NULL, NULL, &out->db, on_socket, "unix:// and local: (elsewhere it is the path, /N)",
       false},
  };
  const size_t count = sizeof known / sizeof *known;
  for (bool more = *at != '\0'; more;) {
    span item = span_until(at, "&");
    more = at[item.len] == '&';
    at += item.len + 1;
    span name = span_until(item.at, "=&");
    size_t index = 0;
    while (index < count && !span_is(name, known[index].name)) index++;
    if (index == count) return refuse_parameter(name, error);
    span value = {item.at + name.len, item.len - name.len};
    if (value.len > 0) value = (span){value.at + 1, value.len - 1};
    lk_status status = set_parameter(&known[index], value, error);
    if (status != LK_OK) return status;
  }
  if (out->functions > 1)
    return lk_fail(error, LK_URL, "URL, parameter 'functions': must be 0 or 1");
  return check_tls_parameters(out, error);
}

static lk_status parse_socket_path(span s, lk_url *out, lk_error *error) {
  if (s.len < 2)
    return lk_fail(error, LK_URL,
                   "URL, path: unix:// needs an absolute path, unix:///path/to.sock");
  lk_status status = decode(s, "path", &out->path, error);
  if (status == LK_OK && strlen(out->path) >= sizeof((struct sockaddr_un *)0)->sun_path)
    status = lk_fail(error, LK_URL, "URL, path: longer than a socket's name may be (%zu bytes)",
                     sizeof((struct sockaddr_un *)0)->sun_path - 1);
  return status;
}

/* /N */
static lk_status parse_db(span path, lk_url *out, lk_error *error) {
  if (path.len <= 1) return LK_OK;
  return parse_integer((span){path.at + 1, path.len - 1}, 0, INT32_MAX, "database", &out->db,
                       error);
}

/* /master[/N] */
static lk_status parse_master(span path, lk_url *out, lk_error *error) {
  span name = path.len > 0 ? span_until(path.at + 1, "/?") : path;
  if (name.len == 0)
    return lk_fail(error, LK_URL,
                   "URL, master: its name is missing: redis-sentinel://host:port/master");
  lk_status status = decode(name, "master", &out->master, error);
  span db = {name.at + name.len, path.len - name.len - 1};
  return status == LK_OK ? parse_db(db, out, error) : status;
}

static lk_status parse_server(span authority, span path, lk_url *out, lk_error *error) {
  lk_url_host at = {NULL, 0};
  lk_status status = parse_host_port(authority, DEFAULT_PORT, &at, error);
  out->host = at.host;
  out->port = at.port;
  return status == LK_OK ? parse_db(path, out, error) : status;
}

static lk_status parse_many(span authority, span path, lk_url *out, lk_error *error) {
  lk_status status = parse_hosts(authority, out, error);
  if (status != LK_OK) return status;
  if (out->kind == LK_URL_SENTINEL) return parse_master(path, out, error);
  status = parse_db(path, out, error);
  if (status == LK_OK && out->db != 0)
    status = lk_fail(error, LK_URL, "URL, database: a cluster has only database 0");
  return status;
}

/* What follows the scheme: [user[:password]@][host[:port]][/path][?parameters] */
static lk_status parse_body(const char *at, bool is_unix, lk_url *out, lk_error *error) {
  span authority = span_until(at, "/?");
  span path = span_until(at + authority.len, "?");
  const char *query = path.at + path.len;
  if (strchr(path.at, '@'))
    return lk_fail(error, LK_URL,
                   "URL: an '@' stands behind the host; in user and password write %%2F for '/' "
                   "and %%3F for '?', in paths and parameters %%40 for '@'");

  lk_status status = LK_OK;
  for (size_t i = authority.len; i > 0; i--) {
    if (authority.at[i - 1] != '@') continue;
    status = parse_user_info((span){authority.at, i - 1}, out, error);
    authority = (span){authority.at + i, authority.len - i};
    break;
  }
  if (status != LK_OK) return status;

  if (is_unix) {
    if (authority.len > 0)
      return lk_fail(error, LK_URL,
                     "URL, path: must be absolute, with three slashes: unix:///path");
    status = parse_socket_path(path, out, error);
  } else if (out->kind == LK_URL_SERVER) {
    status = parse_server(authority, path, out, error);
  } else {
    status = parse_many(authority, path, out, error);
  }
  if (status != LK_OK) return status;
  return parse_parameters(*query ? query + 1 : query, out, error);
}

static lk_status check_text(const char *text, lk_error *error) {
  if (*text == '\0') return lk_fail(error, LK_URL, "URL: it is empty");
  for (const char *at = text; *at; at++) {
    if (*at == ' ' && (strstr(at, "://") || strstr(at, "local:")))
      return lk_fail(
          error, LK_URL,
          "URL: several servers, separated by spaces, where one is expected: name one of them");
    if ((unsigned char)*at <= ' ' || *at == 0x7f)
      return lk_fail(error, LK_URL, "URL: a space or control character; write it as %%20 or %%XX");
    if (*at == '#') return lk_fail(error, LK_URL, "URL: a '#'; write it as %%23");
  }
  return LK_OK;
}

lk_status lk_url_parse(const char *text, lk_url *out, lk_error *error) {
  static const struct {
    const char *scheme;
    bool tls, is_unix;
    lk_url_kind kind;
  } known[] = {{"redis://", false, false, LK_URL_SERVER},
               {"rediss://", true, false, LK_URL_SERVER},
               {"unix://", false, true, LK_URL_SERVER},
               {"redis-sentinel://", false, false, LK_URL_SENTINEL},
               {"rediss-sentinel://", true, false, LK_URL_SENTINEL},
               {"redis-cluster://", false, false, LK_URL_CLUSTER},
               {"rediss-cluster://", true, false, LK_URL_CLUSTER}};
  *out = (lk_url){0};
  lk_status status = check_text(text, error);
  if (status != LK_OK) return status;
  if (strcmp(text, "local:") == 0 || starts_with(text, "local:?")) {
    out->local = true;
    status = parse_parameters(text[6] ? text + 7 : text + 6, out, error);
    return status == LK_OK ? lk_succeed(error) : status;
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!starts_with(text, known[i].scheme)) continue;
    out->kind = known[i].kind;
    out->tls = known[i].tls;
    status = parse_body(text + strlen(known[i].scheme), known[i].is_unix, out, error);
    return status == LK_OK ? lk_succeed(error) : status;
  }
  return lk_fail(error, LK_URL,
                 "URL, scheme: must be redis://, unix://, local:, redis-sentinel://, "
                 "redis-cluster://, or rediss..:// for TLS");
}

static void wipe(char *secret) {
  if (secret) explicit_bzero(secret, strlen(secret));
  free(secret);
}

void lk_url_clear(lk_url *url) {
  wipe(url->password);
  wipe(url->sentinel_password);
  for (size_t i = 0; i < url->nhosts; i++) free(url->hosts[i].host);
  free(url->hosts);
  free(url->host);
  free(url->path);
  free(url->master);
  free(url->user);
  free(url->sentinel_user);
  free(url->cacert);
  free(url->cert);
  free(url->key);
  free(url->sni);
  free(url->tls_min);
  *url = (lk_url){0};
}

static size_t url_put(char *buffer, size_t size, size_t at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(buffer + at, size - at, format, args);
  va_end(args);
  at += length < 0 ? 0 : (size_t)length;
  return at < size ? at : size - 1;
}

static size_t put_host(char *buffer, size_t size, size_t at, const char *host, int port) {
  return url_put(buffer, size, at, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

size_t lk_url_target(const lk_url *url, char *buffer, size_t size) {
  static const char *const kinds[] = {"", "-sentinel", "-cluster"};
  if (url->path) return url_put(buffer, size, 0, "unix://%s?db=%d", url->path, url->db);
  if (url->local) return url_put(buffer, size, 0, "local:");
  size_t at = url_put(buffer, size, 0, "redis%s%s://", url->tls ? "s" : "", kinds[url->kind]);
  if (url->host) at = put_host(buffer, size, at, url->host, url->port);
  for (size_t i = 0; i < url->nhosts; i++) {
    if (i > 0) at = url_put(buffer, size, at, ",");
    at = put_host(buffer, size, at, url->hosts[i].host, url->hosts[i].port);
  }
  if (url->master) at = url_put(buffer, size, at, "/%s", url->master);
  return url->kind == LK_URL_CLUSTER ? at : url_put(buffer, size, at, "/%d", url->db);
}
