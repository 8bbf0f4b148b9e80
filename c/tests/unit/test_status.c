/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <latchkey/counters.h>

#include "base/names.h"
#include "base/status.h"

#define TAIL " script: a9993e364706816aba3e25717850c26c9cd0d89d, on @user_script:12."

static lk_status of_server(const char *text, lk_error *error) {
  return lk_fail_server(error, "lock/acquire", text, strlen(text));
}

static void every_status_has_a_name_a_text_and_a_hint(void **state) {
  (void)state;
  size_t known = 0;
  for (int number = -10; number < 1000; number++) {
    const char *name = lk_status_name(number);
    assert_int_equal(name != NULL, lk_status_text(number) != NULL);
    assert_int_equal(name != NULL, lk_status_hint(number) != NULL);
    if (!name) {
      assert_false(lk_status_is_retriable(number));
      continue;
    }
    assert_memory_equal(name, "LK_", 3);
    assert_true(strlen(lk_status_text(number)) > 3);
    assert_true(strlen(lk_status_hint(number)) > 3);
    known++;
  }
#define COUNT(name, number, retriable, text, hint) +1
  assert_int_equal(known, 0 LK_STATUS_TABLE(COUNT));
#undef COUNT
}

static void names_and_numbers_agree(void **state) {
  (void)state;
  assert_string_equal(lk_status_name(LK_OK), "LK_OK");
  assert_string_equal(lk_status_name(LK_UNSURE), "LK_UNSURE");
  assert_string_equal(lk_status_name(20), "LK_UNREACHABLE");
  assert_null(lk_status_name(19));
}

static void trouble_that_may_pass_is_retriable(void **state) {
  (void)state;
  assert_true(lk_status_is_retriable(LK_BUSY));
  assert_true(lk_status_is_retriable(LK_LOADING));
  assert_false(lk_status_is_retriable(LK_OK));
  assert_false(lk_status_is_retriable(LK_LOST));
  assert_false(lk_status_is_retriable(LK_AUTH));
}

static void every_reason_of_a_loss_has_a_name_and_a_text(void **state) {
  (void)state;
  assert_string_equal(lk_lost_name(LK_LOST_BROKEN), "LK_LOST_BROKEN");
  for (int reason = LK_LOST_NOT; reason <= LK_LOST_BROKEN; reason++) {
    assert_memory_equal(lk_lost_name(reason), "LK_LOST_", 8);
    assert_true(strlen(lk_lost_text(reason)) > 3);
  }
  assert_null(lk_lost_name(-1));
  assert_null(lk_lost_text(LK_LOST_BROKEN + 1));
}

/* Each number from -1 on has the name that the header gives it; NULL: it is none. */
static void assert_names(const char *(*name_of)(int), const char *const names[], int count) {
  for (int number = -1; number <= count; number++) {
    const char *expected = number >= 0 && number < count ? names[number] : NULL;
    const char *name = name_of(number);
    if (expected) assert_string_equal(name, expected);
    if (!expected) assert_null(name);
  }
}

static void every_enum_has_names(void **state) {
  (void)state;
  static const char *const kinds[] = {NULL,      "LK_MUTEX", "LK_LOCK", "LK_FENCED",
                                      "LK_FAIR", "LK_READ",  "LK_WRITE"};
  static const char *const types[] = {"LK_REPLY_NIL",    "LK_REPLY_INTEGER", "LK_REPLY_STRING",
                                      "LK_REPLY_STATUS", "LK_REPLY_ARRAY",   "LK_REPLY_ERROR"};
  static const char *const callbacks[] = {"LK_ON_DISPATCH", "LK_ON_BACKGROUND"};
  static const char *const modes[] = {"LK_WAIT_MESSAGE", "LK_WAIT_SPIN"};
  static const char *const totals[] = {NULL, "LK_TOTAL_INIT", "LK_TOTAL_CHANGE"};
  assert_names(lk_kind_name, kinds, 7);
  assert_names(lk_reply_type_name, types, 6);
  assert_names(lk_callbacks_name, callbacks, 2);
  assert_names(lk_wait_mode_name, modes, 2);
  assert_names(lk_total_name, totals, 3);
}

static void a_message_gives_no_orders_to_a_terminal(void **state) {
  (void)state;
  lk_error error;
  lk_fail(&error, LK_NAME, "%s", "a\033[2Jb\nc\177d\302\233e\303\274\rf\302");
  assert_string_equal(error.message, "a?[2Jb?c?d??e\303\274?f?");
  lk_fail(&error, LK_NAME, "%s", "\302\251 \302\177");
  assert_string_equal(error.message, "\302\251 ??");
  of_server("ERR \033]0;title\007", &error);
  assert_string_equal(error.message, "ERR ?]0;title?");
}

/* By which a name looks like another one. Each byte becomes a question mark; the neighbours stay as they are. */
static void a_message_has_nothing_that_turns_or_ends_a_line(void **state) {
  (void)state;
  static const char *const obeyed[] = {"\330\234",     "\342\200\216", "\342\200\217",
                                       "\342\200\250", "\342\200\251", "\342\200\252",
                                       "\342\200\256", "\342\201\246", "\342\201\251"};
  static const char *const shown[] = {"\330\233",     "\342\200\215", "\342\200\220",
                                      "\342\200\247", "\342\200\257", "\342\201\245",
                                      "\342\201\252", "\342\202\254"};
  lk_error error;
  for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++) {
    lk_fail(&error, LK_NAME, "a%sb", obeyed[i]);
    assert_string_equal(error.message, strlen(obeyed[i]) == 2 ? "a??b" : "a???b");
  }
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    lk_fail(&error, LK_NAME, "%s", shown[i]);
    assert_string_equal(error.message, shown[i]);
  }
}

static void a_failure_fills_the_error(void **state) {
  (void)state;
  lk_error error;
  memset(&error, 'x', sizeof error);
  assert_int_equal(lk_fail(&error, LK_INVALID, "%s %d", "wait_ms", 7), LK_INVALID);
  assert_int_equal(error.status, LK_INVALID);
  assert_string_equal(error.message, "wait_ms 7");
  assert_string_equal(error.script, "");
  assert_string_equal(error.code, "");
  assert_int_equal(error.line, 0);
}

static void a_long_message_is_cut(void **state) {
  (void)state;
  char text[1000];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  lk_error error;
  lk_fail(&error, LK_INVALID, "%s", text);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void success_clears_the_error(void **state) {
  (void)state;
  lk_error error;
  lk_fail(&error, LK_INVALID, "text");
  assert_int_equal(lk_succeed(&error), LK_OK);
  assert_int_equal(error.status, LK_OK);
  assert_string_equal(error.message, "");
}

static void an_error_may_be_null(void **state) {
  (void)state;
  assert_int_equal(lk_fail(NULL, LK_BUSY, "text"), LK_BUSY);
  assert_int_equal(lk_succeed(NULL), LK_OK);
  assert_int_equal(of_server("OOM command not allowed", NULL), LK_OOM);
}

static void the_code_of_a_server_error_says_its_status(void **state) {
  (void)state;
  static const struct {
    const char *text;
    lk_status status;
    const char *code;
  } replies[] = {
      {"LKARG lease must be an integer from 50 to 86400000", LK_BADARG, "LKARG"},
      {"WRONGTYPE Operation against a key holding the wrong kind of value" TAIL, LK_WRONGTYPE,
       "WRONGTYPE"},
      {"OOM command not allowed when used memory > 'maxmemory'.", LK_OOM, "OOM"},
      {"LOADING Redis is loading the dataset in memory", LK_LOADING, "LOADING"},
      {"READONLY You can't write against a read only replica.", LK_READONLY, "READONLY"},
      {"NOREPLICAS Not enough good replicas to write.", LK_NOREPLICAS, "NOREPLICAS"},
      {"MISCONF Redis is configured to save RDB snapshots", LK_MISCONF, "MISCONF"},
      {"BUSY Redis is busy running a script.", LK_SERVER_BUSY, "BUSY"},
      {"MASTERDOWN Link with MASTER is down", LK_MASTERDOWN, "MASTERDOWN"},
      {"CLUSTERDOWN Hash slot not served", LK_CLUSTERDOWN, "CLUSTERDOWN"},
      {"TRYAGAIN Multiple keys request during rehashing of slot", LK_CLUSTERDOWN, "TRYAGAIN"},
      {"ERR Script attempted to access a non local key in a cluster node" TAIL, LK_CLUSTERDOWN,
       "ERR"},
      {"ERR Attempted to access a non local key in a cluster node" TAIL, LK_CLUSTERDOWN, "ERR"},
      {"NOPERM this user has no permissions to run the 'set' command", LK_DENIED, "NOPERM"},
      {"NOAUTH Authentication required.", LK_AUTH, "NOAUTH"},
      {"WRONGPASS invalid username-password pair or user is disabled.", LK_AUTH, "WRONGPASS"},
      {"ERR The user executing the script can't run this command or subcommand" TAIL, LK_DENIED,
       "ERR"},
      {"ERR ACL failure in script: User u has no permissions to run the 'set' command" TAIL,
       LK_DENIED, "ERR"},
      {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
       "replica?)",
       LK_READONLY, "UNBLOCKED"},
      {"ERR WAIT cannot be used with replica instances. Please also note that", LK_READONLY, "ERR"},
      {"UNBLOCKED client unblocked via CLIENT UNBLOCK", LK_SERVER, "UNBLOCKED"},
      {"ERR user_script:3: attempt to index a nil value" TAIL, LK_SCRIPT, "ERR"},
      {"ERR value is not an integer or out of range", LK_SERVER, "ERR"},
      {"BUSYKEY Target key name already exists.", LK_SERVER, "BUSYKEY"},
      {"no code here", LK_SERVER, ""},
      {"No code here", LK_SERVER, ""},
      {"A_FIRST_WORD_THAT_IS_LONGER_THAN_ANY_CODE is none", LK_SERVER, ""},
      {"OOMPH", LK_SERVER, "OOMPH"},
      {"OOM", LK_OOM, "OOM"},
      {"", LK_SERVER, ""},
  };
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    lk_error error;
    assert_int_equal(of_server(replies[i].text, &error), replies[i].status);
    assert_int_equal(error.status, replies[i].status);
    assert_string_equal(error.code, replies[i].code);
    assert_string_equal(error.script, "lock/acquire");
  }
}

static void a_long_name_leaves_the_reason_and_whole_characters(void **state) {
  (void)state;
  char name[LK_NAME_MAX + 1];
  lk_error error;
  memset(name, 'n', sizeof name - 1);
  name[0] = '{';
  name[sizeof name - 1] = '\0';
  assert_int_equal(lk_name_check(name, &error), LK_NAME);
  assert_non_null(strstr(error.message, "nnn: its keys cannot share a hash slot"));

  for (size_t i = 1; i + 1 < sizeof name; i += 2) memcpy(name + i, "\xc3\xbc", 2);
  name[sizeof name - 2] = name[sizeof name - 1] = '\0';
  assert_int_equal(lk_name_check(name, &error), LK_NAME);
  assert_non_null(strstr(error.message, "\xc3\xbc?: its keys cannot share a hash slot"));
}

static void what_is_no_utf8_is_not_shown(void **state) {
  (void)state;
  static const struct {
    const char *text, *shown;
  } rows[] = {
      {"a\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92z", "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92z"},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},
      {"\xe0\xa0\x80", "\xe0\xa0\x80"},
      {"a\xc3", "a?"},
      {"a\xe2\x82", "a??"},
      {"\xf0\x9f\x94 x", "??? x"},
      {"\x80 \xc0\x80 \xc1\xbf", "? ?? ??"},
      {"\xe0\x9f\xbf \xed\xa0\x80", "??? ???"},
      {"\xf0\x8f\xbf\xbf \xf4\x90\x80\x80 \xf5 \xff", "???? ???? ? ?"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    lk_error error;
    lk_fail_fill(&error, LK_INVALID, "%s", rows[i].text);
    assert_string_equal(error.message, rows[i].shown);
  }
}

static void what_a_script_may_not_do_is_told_by_its_line(void **state) {
  (void)state;
  lk_error error;
  of_server("ERR The user executing the script can't run this command or subcommand" TAIL, &error);
  assert_string_equal(error.message, "ERR The user executing the script can't run this command or "
                                     "subcommand (lock/acquire, line 12)");
  of_server("NOPERM this user has no permissions to run the 'set' command", &error);
  assert_string_equal(error.message,
                      "NOPERM this user has no permissions to run the 'set' command");
  static const char text[] = "ERR ACL failure in script: User u has no permissions" TAIL;
  lk_fail_server(&error, NULL, text, strlen(text));
  assert_string_equal(error.message, "ERR ACL failure in script: User u has no permissions");
  assert_int_equal(error.line, 12);
}

static void a_script_error_gives_its_line_and_loses_its_tail(void **state) {
  (void)state;
  lk_error error;
  of_server("WRONGTYPE Operation against a key" TAIL, &error);
  assert_int_equal(error.line, 12);
  assert_string_equal(error.message, "WRONGTYPE Operation against a key");

  of_server("ERR Wrong number of args calling Redis command from script script: x, on "
            "@user_script:7.",
            &error);
  assert_int_equal(error.line, 7);
  assert_string_equal(error.message, "ERR Wrong number of args calling Redis command from script");

  of_server("WRONGTYPE no hash script: on user_script:9", &error);
  assert_int_equal(error.line, 9);
  assert_string_equal(error.message, "WRONGTYPE no hash");

  of_server("WRONGTYPE of a script: x, script: y, on @user_script:9. script: z", &error);
  assert_int_equal(error.line, 9);
  of_server("WRONGTYPE user_script:9", &error);
  assert_int_equal(error.line, 9);
  assert_string_equal(error.message, "WRONGTYPE user_script:9");
}

static void a_script_that_does_not_compile_gives_its_line(void **state) {
  (void)state;
  lk_error error;
  assert_int_equal(
      of_server("ERR Error compiling script (new function): user_script:5: '=' expected", &error),
      LK_SCRIPT);
  assert_int_equal(error.line, 5);
  assert_string_equal(error.message,
                      "ERR Error compiling script (new function): user_script:5: '=' expected");
}

/* That is no defect of the script. */
static void a_command_that_the_server_does_not_know_is_what_it_lacks(void **state) {
  (void)state;
  static const char *const texts[] = {
      "ERR Unknown Redis command called from script" TAIL,
      "ERR Unknown command called from script" TAIL, /* Valkey 9 */
      "ERR Invalid command passed to redis.acl_check_cmd()" TAIL,
      "ERR Invalid command passed to server.acl_check_cmd()" TAIL,
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    lk_error error;
    assert_int_equal(of_server(texts[i], &error), LK_SERVER);
    assert_string_equal(error.code, "ERR");
    assert_true(error.line > 0);
    static const char before[] =
        "the server does not know a command of lock/acquire, line 12: misspelt, renamed, or "
        "switched off; latchkey doctor names what is missing (ERR ";
    assert_int_equal(strncmp(error.message, before, sizeof before - 1), 0);
    assert_null(strstr(error.message, "user_script"));
  }
  lk_error error;
  const char *text = "ERR Unknown Redis command called from script script: x, on @user_script:1.";
  assert_int_equal(lk_fail_server(&error, NULL, text, strlen(text)), LK_SERVER);
  assert_non_null(strstr(error.message, "a command of a script, line 1: misspelt"));
}

static void a_text_that_only_looks_like_a_line_gives_none(void **state) {
  (void)state;
  lk_error error;
  of_server("ERR see user_script:x.", &error);
  assert_int_equal(error.line, 0);
  of_server("ERR user_script:-4.", &error);
  assert_int_equal(error.line, 0);
  of_server("ERR user_script:1000001.", &error);
  assert_int_equal(error.line, 0);
}

static void a_server_error_needs_no_terminator(void **state) {
  (void)state;
  lk_error error;
  lk_fail_server(&error, NULL, "OOM!!!", 3);
  assert_int_equal(error.status, LK_OOM);
  assert_string_equal(error.message, "OOM");
  assert_string_equal(error.script, "");
  static char text[3000];
  memset(text, 'a', sizeof text);
  memcpy(text, "OOM ", 4);
  lk_fail_server(&error, NULL, text, sizeof text);
  assert_int_equal(error.status, LK_OOM);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void the_version_is_the_toolkits(void **state) {
  (void)state;
  char written[32] = "";
  FILE *file = fopen(LK_SOURCE_HOME "/VERSION", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%31s", written), 1);
  fclose(file);
  assert_string_equal(lk_version(), written);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_a_name_a_text_and_a_hint),
      cmocka_unit_test(names_and_numbers_agree),
      cmocka_unit_test(trouble_that_may_pass_is_retriable),
      cmocka_unit_test(every_reason_of_a_loss_has_a_name_and_a_text),
      cmocka_unit_test(every_enum_has_names),
      cmocka_unit_test(a_message_gives_no_orders_to_a_terminal),
      cmocka_unit_test(a_message_has_nothing_that_turns_or_ends_a_line),
      cmocka_unit_test(a_failure_fills_the_error),
      cmocka_unit_test(a_long_message_is_cut),
      cmocka_unit_test(success_clears_the_error),
      cmocka_unit_test(an_error_may_be_null),
      cmocka_unit_test(the_code_of_a_server_error_says_its_status),
      cmocka_unit_test(a_long_name_leaves_the_reason_and_whole_characters),
      cmocka_unit_test(what_is_no_utf8_is_not_shown),
      cmocka_unit_test(what_a_script_may_not_do_is_told_by_its_line),
      cmocka_unit_test(a_script_error_gives_its_line_and_loses_its_tail),
      cmocka_unit_test(a_script_that_does_not_compile_gives_its_line),
      cmocka_unit_test(a_command_that_the_server_does_not_know_is_what_it_lacks),
      cmocka_unit_test(a_text_that_only_looks_like_a_line_gives_none),
      cmocka_unit_test(a_server_error_needs_no_terminator),
      cmocka_unit_test(the_version_is_the_toolkits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
