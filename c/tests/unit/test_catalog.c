/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: embedded scripts, and what a folder adds, replaces, or may not. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/names.h"
#include "base/sha1.h"
#include "harness/catalog.h"
#include "harness/function.h"
#include "kit.h"
#include "os/folder.h"

static char folder[64];

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/lk-catalog-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static void write_bytes(const char *family, const char *verb, const char *bytes, size_t len) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, family);
  assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
  snprintf(path, sizeof path, "%s/%s/%s.lua", folder, family, verb);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, len, file), len);
  assert_int_equal(fclose(file), 0);
}

static void write_file(const char *family, const char *verb, const char *text) {
  write_bytes(family, verb, text, strlen(text));
}

/* The embedded lock/acquire with `old` replaced by `new`, written where it overrides. */
static void override_acquire(const char *old, const char *new) {
  static char text[8192];
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(NULL, false, &catalog, &kit_error));
  const lk_script_def *def = lk_catalog_find(catalog, "lock/acquire");
  assert_non_null(def);
  const char *at = strstr(def->source, old);
  assert_non_null(at);
  int n =
      snprintf(text, sizeof text, "%.*s%s%.*s", (int)(at - def->source), def->source, new,
               (int)(def->source_len - (size_t)(at - def->source) - strlen(old)), at + strlen(old));
  assert_in_range(n, 1, sizeof text - 1);
  write_file("lock", "acquire", text);
  lk_catalog_close(catalog);
}

static void assert_same_fields(const lk_field *a, size_t na, const lk_field *b, size_t nb) {
  assert_int_equal(na, nb);
  for (size_t i = 0; i < na; i++) {
    assert_string_equal(a[i].name, b[i].name);
    assert_string_equal(a[i].type, b[i].type);
    assert_int_equal(a[i].form, b[i].form);
    assert_string_equal(a[i].text, b[i].text);
    assert_string_equal(a[i].plus, b[i].plus);
    assert_int_equal(a[i].optional, b[i].optional);
    assert_int_equal(a[i].many, b[i].many);
  }
}

static void the_run_time_parser_agrees_with_the_generator(void **state) {
  (void)state;
  assert_true(lk_embedded_count > 0);
  for (size_t i = 0; i < lk_embedded_count; i++) {
    const lk_script_def *made = &lk_embedded_scripts[i];
    lk_parsed *parsed;
    EXPECT(LK_OK, lk_header_parse(made->name, made->source, made->source_len, &parsed, &kit_error));
    const lk_script_def *read = lk_parsed_def(parsed);
    assert_string_equal(read->name, made->name);
    assert_string_equal(read->version, made->version);
    assert_string_equal(read->sha1, made->sha1);
    assert_int_equal(read->repeat, made->repeat);
    assert_string_equal(read->returns, made->returns);
    assert_same_fields(read->keys, read->nkeys, made->keys, made->nkeys);
    assert_same_fields(read->args, read->nargs, made->args, made->nargs);
    lk_parsed_free(parsed);
  }
}

static void scripts_are_found_by_name_and_listed_in_order(void **state) {
  (void)state;
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(NULL, false, &catalog, &kit_error));
  assert_int_equal(lk_catalog_count(catalog), lk_embedded_count);
  for (size_t i = 0; i < lk_embedded_count; i++) {
    const lk_script_def *def = lk_catalog_at(catalog, i);
    assert_ptr_equal(lk_catalog_find(catalog, def->name), def);
    if (i > 0) assert_true(strcmp(lk_catalog_at(catalog, i - 1)->name, def->name) < 0);
  }
  assert_null(lk_catalog_at(catalog, lk_embedded_count));
  assert_null(lk_catalog_find(catalog, "lock/none"));
  assert_null(lk_catalog_find(catalog, NULL));
  lk_catalog_close(catalog);
}

static void a_patch_of_a_script_stands_in_for_it(void **state) {
  (void)state;
  override_acquire("version:  1.0.0", "version:  1.0.9");
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error));
  const lk_script_def *def = lk_catalog_find(catalog, "lock/acquire");
  assert_string_equal(def->version, "1.0.9");
  assert_false(lk_catalog_is_embedded(def));
  assert_true(lk_catalog_is_embedded(lk_catalog_find(catalog, "lock/release")));
  assert_int_equal(lk_catalog_count(catalog), lk_embedded_count);
  lk_catalog_close(catalog);
}

static void assert_not_opened(lk_status why, const char *part) {
  lk_catalog *catalog = (lk_catalog *)&catalog;
  EXPECT(why, lk_catalog_open(folder, false, &catalog, &kit_error));
  assert_null(catalog);
  EXPECT_MESSAGE(part);
}

static void another_major_version_does_not_stand_in(void **state) {
  (void)state;
  override_acquire("version:  1.0.0", "version:  2.0.0");
  assert_not_opened(LK_VERSION, "2.0.0");
  EXPECT_MESSAGE("1.0.0");
}

static void another_shape_does_not_stand_in(void **state) {
  (void)state;
  override_acquire("- owner  owner", "- name   owner");
  assert_not_opened(LK_VERSION, "lock/acquire");
  override_acquire("- {1, hold} ", "- {1, held} ");
  assert_not_opened(LK_VERSION, "lock/acquire");
  override_acquire("repeat:   hold", "repeat:   no");
  assert_not_opened(LK_VERSION, "lock/acquire");
  static const char key[] = "- lock   hash   rw  {name}  ";
  static const char *const keys[] = {"- lock   hash   rw  {name}  \n  - more   hash   rw  {name}  ",
                                     "- key    hash   rw  {name}  ",
                                     "- lock   set    rw  {name}  ",
                                     "- lock   hash   rw  prefix:p  ",
                                     "- lock   hash   rw  {name}x  ",
                                     "- lock   hash   rw  {name}+owner  ",
                                     "- lock   hash   rw  any  "};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    override_acquire(key, keys[i]);
    assert_not_opened(LK_VERSION, "other keys, arguments or replies");
  }
  static const char *const args[] = {"- owner?  owner", "- owner*  owner", "- owner  token",
                                     "- owner  owner  1..2\n  - last "};
  for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
    override_acquire("- owner  owner", args[i]);
    assert_not_opened(LK_VERSION, "other keys, arguments or replies");
  }
}

static void a_file_that_is_no_script_is_named(void **state) {
  (void)state;
  write_file("mine", "broken", "return 1\n");
  assert_not_opened(LK_INVALID, "mine/broken.lua");
  write_file("mine", "broken",
             "#!lua\n--[[ latchkey-script\nname:     mine/other\nversion:  1.0.0\n]]\n");
  assert_not_opened(LK_INVALID, "mine/other");
  write_file("mine", "broken",
             "#!lua\n--[[ latchkey-script\nname:     mine/broken\nversion:  one\n]]\n");
  assert_not_opened(LK_INVALID, "version");
  write_file("mine", "broken", "#!lua\n--[[ latchkey-script\nname:\nversion:  1.0.0\n]]\n");
  assert_not_opened(LK_INVALID, "lacks a name");
  write_file("mine", "broken",
             "#!lua\n--[[ latchkey-script\nname:     mine/broken\nnonsense\n]]\n");
  assert_not_opened(LK_INVALID, "broken.lua:4");
  static const char cut[] =
      "#!lua\n--[[ latchkey-script\nname:     mine/broken\nversion:  1.0.0\n]]\nreturn '\0'\n";
  write_bytes("mine", "broken", cut, sizeof cut - 1);
  assert_not_opened(LK_INVALID, "NUL");
}

/* `lint` refuses more; what it takes is understood here, and no text ends the process. */
static void a_header_that_is_not_understood_gives_its_line(void **state) {
  (void)state;
  static const char *const lines[] = {"repeat:   sometimes", "keys:\n- lock", "argv:\n  - owner"};
  static const int numbers[] = {5, 6, 6};
  char text[4096], where[32];
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    snprintf(text, sizeof text,
             "#!lua\n--[[ latchkey-script\nname:     mine/broken\nversion:  1.0.0\n%s\n]]\n",
             lines[i]);
    write_file("mine", "broken", text);
    snprintf(where, sizeof where, "broken.lua:%d:", numbers[i]);
    assert_not_opened(LK_INVALID, where);
  }
  static const char *const sections[] = {"keys:", "argv:"};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
    int len = snprintf(text, sizeof text,
                       "#!lua\n--[[ latchkey-script\nname:     mine/broken\n"
                       "version:  1.0.0\n%s\n",
                       sections[i]);
    for (int n = 0; n < 33; n++)
      len += snprintf(text + len, sizeof text - (size_t)len, "  - a  b\n");
    snprintf(text + len, sizeof text - (size_t)len, "]]\n");
    write_file("mine", "broken", text);
    assert_not_opened(LK_INVALID, "broken.lua:38:");
  }
  static const char *const bare[] = {"return 1\n--[[ latchkey-script\nname:  mine/broken\n]]\n",
                                     "#!lua\n--[[ latchkey-script\n]]\n",
                                     "#!lua\n--[[ latchkey-script\nname:  mine/broken\n]]\n",
                                     "#!lua\n--[[ latchkey-script\nversion:  1.0.0\n]]\n",
                                     ("#!lua\n--[[ latchkey-script\nname:  mine/broken\n"
                                      "version:  1.0.0b\n]]\n")};
  for (size_t i = 0; i < sizeof bare / sizeof *bare; i++) {
    write_file("mine", "broken", bare[i]);
    assert_not_opened(LK_INVALID, "mine/broken.lua: ");
  }
}

static void what_says_nothing_in_a_header_is_passed_over(void **state) {
  (void)state;
  write_file("mine", "fine",
             "#!lua flags=no-writes,allow-stale\r\n--[[ latchkey-script\nname:     mine/fine\r\n"
             "version:  1.2.3 \n\nkeys:\n  - a  b  c  d  e  f  g  h\nargv:\n  - x  any\n"
             "returns:\n  - nothing\n  - {1}  yes\n]]\nreturn {1}");
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(folder, true, &catalog, &kit_error));
  const lk_script_def *def = lk_catalog_find(catalog, "mine/fine");
  assert_string_equal(def->version, "1.2.3");
  assert_string_equal(def->returns, "{1}");
  assert_int_equal(def->nkeys, 1);
  assert_int_equal(def->nargs, 1);
  assert_string_equal(def->function, "mine_fine_1");
  size_t len;
  char *code = lk_function_code(def, &len);
  assert_non_null(strstr(code, "flags={'no-writes', 'allow-stale"));
  assert_string_equal(code + len - strlen("return {1}\nend}\n"), "return {1}\nend}\n");
  free(code);
  lk_catalog_close(catalog);
}

static void two_scripts_that_would_be_one_function_are_named(void **state) {
  (void)state;
  static const char text[] = "#!lua\n--[[ latchkey-script\nname:  %s\nversion:  1.%d.0\n]]\n";
  char source[128];
  snprintf(source, sizeof source, text, "a/b_c", 0);
  write_file("a", "b_c", source);
  snprintf(source, sizeof source, text, "a_b/c", 1);
  write_file("a_b", "c", source);
  lk_catalog *catalog = (lk_catalog *)&catalog;
  EXPECT(LK_INVALID, lk_catalog_open(folder, true, &catalog, &kit_error));
  assert_null(catalog);
  EXPECT_MESSAGE("a/b_c and a_b/c would be one function, a_b_c_1");
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error)); /* SHA1s differ */
  lk_catalog_close(catalog);
}

/* More flags than servers have: those that fit are named. */
static void flags_without_an_end_have_one(void **state) {
  (void)state;
  char source[1024] = "#!lua flags=";
  while (strlen(source) < 600) strcat(source, "no-writes,");
  strcat(source, "\nreturn {1}\n");
  const lk_script_def def = {.name = "mine/long",
                             .version = "1.0.0",
                             .sha1 = "0123456789012345678901234567890123456789",
                             .function = "mine_long_1",
                             .source = source,
                             .source_len = strlen(source)};
  size_t len = 0, flags = 0;
  char *code = lk_function_code(&def, &len);
  assert_non_null(code);
  assert_int_equal(strlen(code), len);
  for (const char *at = code; (at = strstr(at, "'no-writes'")) != NULL; at++) flags++;
  assert_in_range(flags, 15, 25);
  free(code);
}

/* make LINE: a shell makes mine/odd.lua. */
static void make(const char *line) {
  char command[512];
  snprintf(command, sizeof command, "mkdir -p '%s/mine' && cd '%s/mine' && rm -rf odd.lua && %s",
           folder, folder, line);
  assert_int_equal(system(command), 0);
}

static void what_is_no_file_of_a_script_is_named_or_passed_over(void **state) {
  (void)state;
  make("head -c 1048577 /dev/zero >odd.lua");
  assert_not_opened(LK_INVALID, "larger than 1048576 bytes");
  make("true");
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s/mine/odd.lua", folder);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
  close(fd);
  assert_not_opened(LK_INVALID, "odd.lua: ");
  make("ln -s nowhere odd.lua && touch notes.txt .lua x.lu ../x && mkdir -p _more");
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error));
  assert_int_equal(lk_catalog_count(catalog), lk_embedded_count);
  lk_catalog_close(catalog);
}

static void what_cannot_be_looked_at_is_named(void **state) {
  (void)state;
  make("ln -s odd.lua odd.lua");
  assert_not_opened(LK_INVALID, "/mine/odd.lua: ");
}

static void a_fifo_is_not_waited_for(void **state) {
  (void)state;
  make("mkfifo odd.lua");
  alarm(20);
  assert_not_opened(LK_INVALID, "/mine/odd.lua: not a regular file");
  alarm(0);
}

static void a_path_that_is_too_long_is_named(void **state) {
  (void)state;
  char path[PATH_MAX + 16];
  lk_catalog *catalog = (lk_catalog *)&catalog;
  memset(path, '/', sizeof path);
  memcpy(path, folder, strlen(folder));
  memcpy(path + sizeof path - 8, "/nothing", 8);
  path[sizeof path - 1] = '\0';
  EXPECT(LK_INVALID, lk_catalog_open(path, false, &catalog, &kit_error));
  assert_null(catalog);
  EXPECT_MESSAGE(folder); /* the reason has no room behind it */
}

static void a_folder_that_fails_while_it_is_read_is_no_end(void **state) {
  (void)state;
  int failure = 0;
  lk_folder *opened = lk_folder_open(folder, &failure);
  assert_non_null(opened);
  close(dirfd((DIR *)opened));
  assert_null(lk_folder_next(opened, &failure));
  assert_int_equal(failure, EBADF);
  lk_folder_close(opened);
}

static void a_folder_that_is_not_there_is_named(void **state) {
  (void)state;
  teardown(NULL);
  assert_not_opened(LK_INVALID, folder);
}

static void an_empty_name_of_a_folder_is_refused(void **state) {
  (void)state;
  lk_catalog *catalog = (lk_catalog *)&catalog;
  EXPECT(LK_INVALID, lk_catalog_open("", false, &catalog, &kit_error));
  assert_null(catalog);
  EXPECT_MESSAGE("script_dir is empty");
}

static void folders_are_read_eight_levels_deep(void **state) {
  (void)state;
  write_file("a", "b",
             "#!lua\n--[[ latchkey-script\nname:  a/b\nversion:  1.0.0\n]]\nreturn {1}\n");
  make("mkdir -p ../1/2/3/4/5/6/7/8");
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error));
  assert_int_equal(lk_catalog_count(catalog), lk_embedded_count + 1);
  lk_catalog_close(catalog);
  make("mkdir ../1/2/3/4/5/6/7/8/9");
  assert_not_opened(LK_INVALID, "/1/2/3/4/5/6/7/8/9: more than 8 folders");
}

static void a_link_that_leads_back_is_named(void **state) {
  (void)state;
  make("ln -s . back");
  assert_not_opened(LK_INVALID, "/mine/back/back/");
}

static void folders_with_an_underscore_hold_no_scripts(void **state) {
  (void)state;
  write_file("_fragments", "piece", "return 1\n");
  lk_catalog *catalog;
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error));
  assert_int_equal(lk_catalog_count(catalog), lk_embedded_count);
  lk_catalog_close(catalog);
}

static void assert_formed(lk_form form, const char *text, const char *name, const char *expected) {
  lk_field field = {.name = "key", .type = "hash", .form = form, .text = text, .plus = ""};
  char buffer[64];
  assert_int_equal(lk_name_form(&field, name, NULL, 0), strlen(expected));
  lk_name_form(&field, name, buffer, sizeof buffer);
  assert_string_equal(buffer, expected);
}

static void names_of_keys_are_formed_as_the_wire_has_them(void **state) {
  (void)state;
  assert_formed(LK_FORM_NAME, "", "job", "job");
  assert_formed(LK_FORM_PREFIX, "p", "job", "p:{job}");
  assert_formed(LK_FORM_PREFIX, "p", "{a}:job", "p:{a}:job");
  assert_formed(LK_FORM_SUFFIX, "s", "job", "{job}:s");
  assert_formed(LK_FORM_SUFFIX, "s", "{a}:job", "{a}:job:s");
  assert_formed(LK_FORM_BRACES, "b__", "job", "b__{job}");
  assert_formed(LK_FORM_BRACES, "b__", "{a}:job", "b__{{a}:job}");
}

static void assert_formed_with(const char *plus, const char *name, const char *expected) {
  lk_field field = {
      .name = "key", .type = "hash", .form = LK_FORM_PREFIX, .text = "p", .plus = plus};
  char buffer[64], few[6];
  assert_int_equal(lk_name_form_with(&field, name, "me:7", NULL, 0), strlen(expected));
  lk_name_form_with(&field, name, "me:7", buffer, sizeof buffer);
  assert_string_equal(buffer, expected);
  assert_int_equal(lk_name_form_with(&field, name, "me:7", few, sizeof few), strlen(expected));
  assert_memory_equal(few, expected, sizeof few - 1);
}

static void names_of_keys_take_an_argument_behind_the_form(void **state) {
  (void)state;
  assert_formed_with("", "job", "p:{job}");
  assert_formed_with("caller", "job", "p:{job}:me:7");
  assert_formed_with("caller", "{a}:job", "p:{a}:job:me:7");
  assert_formed_with("owner+:rest", "job", "p:{job}:me:7:rest");
}

static void a_digest_is_the_known_one(void **state) {
  (void)state;
  char digest[LK_SHA1_SIZE];
  assert_true(lk_sha1("abc", 3, digest));
  assert_string_equal(digest, "a9993e364706816aba3e25717850c26c9cd0d89d"); /* FIPS 180 */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_run_time_parser_agrees_with_the_generator),
      TEST(scripts_are_found_by_name_and_listed_in_order),
      TEST(a_patch_of_a_script_stands_in_for_it),
      TEST(another_major_version_does_not_stand_in),
      TEST(another_shape_does_not_stand_in),
      TEST(a_file_that_is_no_script_is_named),
      TEST(a_header_that_is_not_understood_gives_its_line),
      TEST(what_says_nothing_in_a_header_is_passed_over),
      TEST(two_scripts_that_would_be_one_function_are_named),
      TEST(flags_without_an_end_have_one),
      TEST(what_is_no_file_of_a_script_is_named_or_passed_over),
      TEST(what_cannot_be_looked_at_is_named),
      TEST(a_fifo_is_not_waited_for),
      TEST(a_path_that_is_too_long_is_named),
      TEST(a_folder_that_fails_while_it_is_read_is_no_end),
      TEST(a_folder_that_is_not_there_is_named),
      TEST(an_empty_name_of_a_folder_is_refused),
      TEST(folders_are_read_eight_levels_deep),
      TEST(a_link_that_leads_back_is_named),
      TEST(folders_with_an_underscore_hold_no_scripts),
      TEST(names_of_keys_are_formed_as_the_wire_has_them),
      TEST(names_of_keys_take_an_argument_behind_the_form),
      TEST(a_digest_is_the_known_one),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
