/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/url.h"

static lk_url good(const char *text) {
  lk_url url;
  lk_error error;
  if (lk_url_parse(text, &url, &error) != LK_OK) fail_msg("%s: %s", text, error.message);
  assert_int_equal(error.status, LK_OK);
  return url;
}

static void assert_refused(const char *text, const char *part) {
  lk_url url;
  lk_error error;
  assert_int_equal(lk_url_parse(text, &url, &error), LK_URL);
  lk_url_clear(&url);
  assert_int_equal(error.status, LK_URL);
  if (!strstr(error.message, part))
    fail_msg("%s: \"%s\" does not name %s", text, error.message, part);
}

static void a_host_alone_takes_the_defaults(void **state) {
  (void)state;
  lk_url url = good("redis://db.example");
  assert_string_equal(url.host, "db.example");
  assert_int_equal(url.port, 6379);
  assert_int_equal(url.db, 0);
  assert_false(url.tls);
  assert_null(url.user);
  assert_null(url.password);
  assert_null(url.path);
  assert_int_equal(url.connect_ms, 0);
  lk_url_clear(&url);
}

static void every_part_of_a_host_url_is_read(void **state) {
  (void)state;
  lk_url url = good("rediss://me:secret@h:7000/3?cacert=/ca&cert=/c&key=/k&sni=name&tls_min=1.3"
                    "&connect=250ms&command=2s");
  assert_true(url.tls);
  assert_string_equal(url.user, "me");
  assert_string_equal(url.password, "secret");
  assert_string_equal(url.host, "h");
  assert_int_equal(url.port, 7000);
  assert_int_equal(url.db, 3);
  assert_string_equal(url.cacert, "/ca");
  assert_string_equal(url.cert, "/c");
  assert_string_equal(url.key, "/k");
  assert_string_equal(url.sni, "name");
  assert_string_equal(url.tls_min, "1.3");
  assert_int_equal(url.connect_ms, 250);
  assert_int_equal(url.command_ms, 2000);
  lk_url_clear(&url);
}

static void user_or_password_may_be_left_out(void **state) {
  (void)state;
  lk_url url = good("redis://:secret@h");
  assert_null(url.user);
  assert_string_equal(url.password, "secret");
  lk_url_clear(&url);

  url = good("redis://me@h");
  assert_string_equal(url.user, "me");
  assert_null(url.password);
  lk_url_clear(&url);
}

static void percent_codes_are_decoded(void **state) {
  (void)state;
  lk_url url = good("redis://m%65:a%2Fb%40c%3a%25@h?connect=1%73");
  assert_string_equal(url.user, "me");
  assert_string_equal(url.password, "a/b@c:%");
  assert_int_equal(url.connect_ms, 1000);
  lk_url_clear(&url);
  static const char *const wrong[] = {"%-1", "%1-", "%:1", "%1=", "%G1", "%1`", "%g1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[32];
    snprintf(text, sizeof text, "redis://me:%s@h", wrong[i]);
    assert_refused(text, "password");
  }
}

static void the_last_at_sign_ends_the_password(void **state) {
  (void)state;
  lk_url url = good("redis://me:a@b:c@h:1");
  assert_string_equal(url.password, "a@b:c");
  assert_string_equal(url.host, "h");
  lk_url_clear(&url);
}

static void ipv6_stands_in_brackets(void **state) {
  (void)state;
  lk_url url = good("redis://[::1]:7000");
  assert_string_equal(url.host, "::1");
  assert_int_equal(url.port, 7000);
  lk_url_clear(&url);

  url = good("redis://[fe80::1%25eth0]");
  assert_string_equal(url.host, "fe80::1%eth0");
  assert_int_equal(url.port, 6379);
  lk_url_clear(&url);

  assert_refused("redis://[::1", "host");
  assert_refused("redis://[]", "host");
  assert_refused("redis://[localhost]", "host");
  assert_refused("redis://[::1]7000", "port");
  assert_refused("redis://::1", "host");
}

static void a_socket_has_a_path_and_a_database(void **state) {
  (void)state;
  lk_url url = good("unix:///run/a%20b.sock?db=2&command=1m");
  assert_string_equal(url.path, "/run/a b.sock");
  assert_null(url.host);
  assert_int_equal(url.db, 2);
  assert_int_equal(url.command_ms, 60000);
  lk_url_clear(&url);

  url = good("unix://me:secret@/run/s");
  assert_string_equal(url.path, "/run/s");
  assert_string_equal(url.password, "secret");
  lk_url_clear(&url);
}

static void local_takes_no_address(void **state) {
  (void)state;
  lk_url url = good("local:");
  assert_true(url.local);
  assert_null(url.path);
  lk_url_clear(&url);

  url = good("local:?db=1&connect=5s");
  assert_int_equal(url.db, 1);
  assert_int_equal(url.connect_ms, 5000);
  lk_url_clear(&url);

  assert_refused("local:/run/s", "scheme");
  assert_refused("local://", "scheme");
}

static void each_mistake_names_its_part(void **state) {
  (void)state;
  static const char *const mistakes[][2] = {
      {"", "empty"},
      {"db.example:6379", "scheme"},
      {"http://h", "scheme"},
      {"REDIS://h", "scheme"},
      {"redis:/h", "scheme"},
      {"redis://", "host"},
      {"redis://:7000", "host"},
      {"redis://me:secret@", "host"},
      {"redis://h:", "port"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://h:99999999999999999999", "port"},
      {"redis://h:18446744073709557995", "port"}, /* 2^64 + 6379 */
      {"redis://h:12x", "port"},
      {"redis://h:-1", "port"},
      {"redis://h:1:2", "host"},
      {"redis://h/x", "database"},
      {"redis://h/-1", "database"},
      {"redis://h/1/", "database"},
      {"redis://h/2147483648", "database"},
      {"redis://h/4294967297", "database"}, /* 1 in 32 bits */
      {"unix://", "path"},
      {"unix:///", "path"},
      {"unix://run/s", "path"},
      {"unix:///s?db=x", "parameter 'db'"},
      {"redis://h%zz", "host"},
      {"redis://h%4", "host"},
      {"redis://m%00e:x@h", "user"},
      {"redis://me:%@h", "password"},
      {"redis://[::1%zz]", "host"},
      {"redis://[1111:2222:3333:4444:5555:6666:7777:8888:9999:0000]", "host"},
      {"unix:///s%zz", "path"},
      {"redis://h?connect=%zz", "parameter 'connect'"},
      {"redis-sentinel://h/%zz", "master"},
      {"redis-cluster://h/x", "database"},
      {"local:?x=1", "parameter 'x'"},
      {"redis://h#x", "'#'"},
      {"redis://h\n", "control character"},
      {"redis://h\x7f", "control character"},
      {" redis://h", "space"},
      {"redis://h ", "space"},
      {"redis://h?connect=", "parameter 'connect'"},
      {"redis://h?connect", "parameter 'connect'"},
      {"redis://h?connect=1s&connect=1s", "parameter 'connect'"},
      {"redis://h?x", "parameter 'x'"},
      {"redis://h?Connect=1s", "parameter 'Connect'"},
      {"redis://h?=1s", "parameters"},
      {"redis://h?x!=1s", "parameters"},
      {"redis://h?a_name_of_more_than_thirty_two_bytes=1s", "parameters"},
      {"redis://h?&", "parameters"},
      {"redis://h?connect=1s&", "parameters"},
      {"redis://h?db=1", "parameter 'db'"},
      {"redis://h?cacert=/ca", "parameter 'cacert'"},
      {"unix:///s?sni=h", "parameter 'sni'"},
      {"rediss://h?tls_min=1.1", "parameter 'tls_min'"},
      {"rediss://h?cert=/c", "parameter 'cert'"},
      {"rediss://h?key=/k", "parameter 'key'"},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
    assert_refused(mistakes[i][0], mistakes[i][1]);
}

static void a_socket_name_longer_than_the_system_takes_is_refused(void **state) {
  (void)state;
  char text[256];
  snprintf(text, sizeof text, "unix:///%0150d", 0);
  assert_refused(text, "path");
}

static void durations_need_a_unit_and_stay_between_1ms_and_60s(void **state) {
  (void)state;
  lk_url url = good("redis://h?connect=1ms&command=60s");
  assert_int_equal(url.connect_ms, 1);
  assert_int_equal(url.command_ms, 60000);
  lk_url_clear(&url);
  static const char *const wrong[] = {
      "0ms",  "60001ms", "61s", "2m",  "1h", "1",          "s",
      "1.5s", "-1s",     "+1s", "1 s", "1S", "999999999m", "99999999999999999999ms"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[80];
    snprintf(text, sizeof text, "redis://h?command=%s", wrong[i]);
    assert_refused(text, strchr(wrong[i], ' ') ? "space" : "parameter 'command'");
  }
}

static void the_least_version_of_tls_is_one_of_two(void **state) {
  (void)state;
  lk_url url = good("rediss://h?tls_min=1.2");
  assert_string_equal(url.tls_min, "1.2");
  lk_url_clear(&url);
  url = good("rediss://h?tls_min=1.3");
  assert_string_equal(url.tls_min, "1.3");
  lk_url_clear(&url);
}

static void what_later_versions_bring_is_refused_as_such(void **state) {
  (void)state;
  assert_refused("redis://h1 redis://h2", "name one of them");
  assert_refused("redis://h1 local:", "name one of them");
}

static void sentinels_are_listed_before_the_name_of_the_master(void **state) {
  (void)state;
  lk_url url = good("redis-sentinel://me:secret@s1,[::1]:7,s3:27000/the%20master/4?sentinel_user=w"
                    "&sentinel_password=%25&functions=1");
  assert_int_equal(url.kind, LK_URL_SENTINEL);
  assert_false(url.tls);
  assert_null(url.host);
  assert_int_equal(url.nhosts, 3);
  assert_string_equal(url.hosts[0].host, "s1");
  assert_int_equal(url.hosts[0].port, 26379);
  assert_string_equal(url.hosts[1].host, "::1");
  assert_int_equal(url.hosts[1].port, 7);
  assert_string_equal(url.hosts[2].host, "s3");
  assert_int_equal(url.hosts[2].port, 27000);
  assert_string_equal(url.master, "the master");
  assert_int_equal(url.db, 4);
  assert_string_equal(url.user, "me");
  assert_string_equal(url.password, "secret");
  assert_string_equal(url.sentinel_user, "w");
  assert_string_equal(url.sentinel_password, "%");
  lk_url_clear(&url);
  assert_null(url.hosts);

  url = good("rediss-sentinel://s/m?cacert=/ca");
  assert_true(url.tls);
  assert_int_equal(url.kind, LK_URL_SENTINEL);
  assert_int_equal(url.db, 0);
  assert_string_equal(url.cacert, "/ca");
  lk_url_clear(&url);
}

static void some_nodes_of_a_cluster_are_listed(void **state) {
  (void)state;
  lk_url url = good("rediss-cluster://me:secret@n1,n2:7000/?cacert=/ca");
  assert_int_equal(url.kind, LK_URL_CLUSTER);
  assert_true(url.tls);
  assert_int_equal(url.nhosts, 2);
  assert_string_equal(url.hosts[0].host, "n1");
  assert_int_equal(url.hosts[0].port, 6379);
  assert_string_equal(url.hosts[1].host, "n2");
  assert_int_equal(url.hosts[1].port, 7000);
  assert_string_equal(url.user, "me");
  lk_url_clear(&url);

  url = good("redis-cluster://n1:1/0");
  assert_false(url.tls);
  lk_url_clear(&url);
}

static void mistakes_in_lists_name_their_part(void **state) {
  (void)state;
  assert_refused("redis-sentinel://s1:1,s2:2", "master");
  assert_refused("redis-sentinel://s1:1/", "master");
  assert_refused("redis-sentinel://s1:1/m/x", "database");
  assert_refused("redis-sentinel://s1,,s2/m", "host");
  assert_refused("redis-sentinel://s1,/m", "host");
  assert_refused("redis-sentinel://s1:0,s2/m", "port");
  assert_refused("redis-cluster://n:1/2", "database");
  assert_refused("redis-cluster://", "host");
  assert_refused("redis-cluster://n?sentinel_user=x", "sentinel_user");
  assert_refused("redis-cluster://n?db=0", "'db'");
  assert_refused("redis-cluster://n?cacert=/x", "cacert");
  assert_refused("redis://h?sentinel_password=x", "sentinel_password");
  char many[400] = "redis-cluster://n";
  for (int i = 0; i < LK_URL_HOSTS_MAX; i++) strcat(many, ",n");
  assert_refused(many, "more than 64");
}

/* Secrets that break the URL in every way, or are followed by a URL that is broken elsewhere. */
static void no_message_shows_user_or_password(void **state) {
  (void)state;
  static const char *const secrets[] = {"xyzzy",   "xyz:zy",   "xyz/zy",  "xyz?zy",    "xyz#zy",
                                        "xyz%zy",  "xyz%4",    "xyz zy",  "xyz@zy",    "xyz[zy",
                                        "xyz]zy",  "xyz://zy", "xyz&zy",  "xyz?zy=1&", "xyz\tzy",
                                        "?xyz=zy", "xyz=zy",   "/xyz?zy", "[xyz",      "xyz%00zy"};
  static const char *const shapes[] = {
      "redis://user:%s@h:x",     "redis://user:%s@",       "redis://user:%s",
      "redis://user:%sh:6379/0", "redis://:%s@h?foo=1",    "redis://%s@h/x",
      "redis://user:%s@h/1/2",   "redis:/user:%s@h",       "user:%s@h",
      "rediss://user:%s@[h",     "unix://user:%s@/s?db=x", "redis-cluster://user:%s@h",
      "redis://u:%s@h redis://g"};
  for (size_t s = 0; s < sizeof secrets / sizeof *secrets; s++) {
    for (size_t f = 0; f < sizeof shapes / sizeof *shapes; f++) {
      char text[128];
      lk_url url;
      lk_error error;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      snprintf(text, sizeof text, shapes[f], secrets[s]);
#pragma GCC diagnostic pop
      lk_status status = lk_url_parse(text, &url, &error);
      char target[256] = "";
      if (status == LK_OK) lk_url_target(&url, target, sizeof target);
      lk_url_clear(&url);
      if (strstr(error.message, "xyz") || strstr(error.message, "zy"))
        fail_msg("%s: %s", text, error.message);
      if (strstr(shapes[f], "@h") && strstr(target, "xyz")) fail_msg("%s: %s", text, target);
    }
  }
}

static void a_cleared_url_can_be_cleared_again(void **state) {
  (void)state;
  lk_url url = good("redis://me:secret@h");
  lk_url_clear(&url);
  lk_url_clear(&url);
  assert_null(url.password);
}

static void the_target_has_the_address_alone(void **state) {
  (void)state;
  static const char *const targets[][2] = {
      {"redis://me:secret@h/2?connect=1s", "redis://h:6379/2"},
      {"rediss://[::1]:7000", "rediss://[::1]:7000/0"},
      {"unix://me:secret@/run/s?db=3", "unix:///run/s?db=3"},
      {"local:", "local:"},
      {"redis-sentinel://me:secret@s1,[::1]:7/m?sentinel_password=x",
       "redis-sentinel://s1:26379,[::1]:7/m/0"},
      {"rediss-cluster://me:secret@n1,n2:7", "rediss-cluster://n1:6379,n2:7"},
  };
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    lk_url url = good(targets[i][0]);
    char buffer[64];
    assert_int_equal(lk_url_target(&url, buffer, sizeof buffer), strlen(targets[i][1]));
    assert_string_equal(buffer, targets[i][1]);
    lk_url_clear(&url);
  }
}

static void a_target_longer_than_the_buffer_is_cut(void **state) {
  (void)state;
  lk_url url = good("redis://db.example:6379");
  char buffer[] = "12345678";
  assert_int_equal(lk_url_target(&url, buffer, 6), 5);
  assert_string_equal(buffer, "redis");
  assert_int_equal(buffer[6], '7');
  lk_url_clear(&url);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_host_alone_takes_the_defaults),
      cmocka_unit_test(every_part_of_a_host_url_is_read),
      cmocka_unit_test(user_or_password_may_be_left_out),
      cmocka_unit_test(percent_codes_are_decoded),
      cmocka_unit_test(the_last_at_sign_ends_the_password),
      cmocka_unit_test(ipv6_stands_in_brackets),
      cmocka_unit_test(a_socket_has_a_path_and_a_database),
      cmocka_unit_test(local_takes_no_address),
      cmocka_unit_test(each_mistake_names_its_part),
      cmocka_unit_test(a_socket_name_longer_than_the_system_takes_is_refused),
      cmocka_unit_test(durations_need_a_unit_and_stay_between_1ms_and_60s),
      cmocka_unit_test(the_least_version_of_tls_is_one_of_two),
      cmocka_unit_test(what_later_versions_bring_is_refused_as_such),
      cmocka_unit_test(sentinels_are_listed_before_the_name_of_the_master),
      cmocka_unit_test(some_nodes_of_a_cluster_are_listed),
      cmocka_unit_test(mistakes_in_lists_name_their_part),
      cmocka_unit_test(no_message_shows_user_or_password),
      cmocka_unit_test(a_cleared_url_can_be_cleared_again),
      cmocka_unit_test(the_target_has_the_address_alone),
      cmocka_unit_test(a_target_longer_than_the_buffer_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
