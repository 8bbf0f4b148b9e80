/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the program share. */
#ifndef CLI_H
#define CLI_H

#include <latchkey/latchkey.h>

/* The exit codes that are the same for every command. */
enum {
  CLI_DONE = 0,
  CLI_USE = 64,
  CLI_SERVER = 69,
  CLI_DEFECT = 70,
  CLI_UNWRITTEN = 74,
  CLI_BUSY = 75,
  CLI_LOST = 80,
  CLI_CANNOT_RUN = 126,
  CLI_NOT_FOUND = 127,
  CLI_SIGNAL = 128 /* plus the signal's number */
};

/* First of all. A descriptor that is opened later must not take the place of a standard one that is closed: messages
 * would go into it. */
void standard_open(void);
/* Was the program started without it? */
bool standard_is_closed(int fd);
/* Of a result that could not be written nobody shall read a code: CLI_UNWRITTEN then, and why; else `code`. */
int standard_written(int code);

/* `latchkey exec`; argv[0] is "exec". */
int exec_main(int argc, char **argv);
/* `latchkey bench`; argv[0] is "bench". */
int bench_main(int argc, char **argv);

/* Every command that is written in Lua, the global help, and what is no command at all; argv[0] is the
 * program. */
int lua_main(int argc, char **argv);

/* The folder that holds scripts/, tools/ and spec/, allocated; NULL: none, which standard error was told. */
char *home_find(const char *program);
/* The folder with the declarations of this program's library, wherever its home is; allocated; NULL: none. */
char *home_declarations(const char *program);

/* The exit code of a command that failed with this status. */
int exit_of(lk_status status);
/* What to do about it; NULL: the message that was written before says so. */
const char *hint_of(const lk_error *error);

/* What may stand around a URL, and between several. */
#define CLI_BLANKS " \t\r\n\f\v"

/* What a server is given: the password of --password-file, else that of LATCHKEY_PASSWORD, which is no matter of a
 * server of local:, as it has none; NULL: the URL's. */
const char *password_of(const char *url, const char *given);
/* The first line of the file of --password-file, in the place of *out; to be freed. LK_OK, or LK_INVALID and why. */
lk_status password_read(const char *path, char **out, lk_error *error);

/* JSON holds UTF-8 only: a text that is none has its odd bytes as LATCHKEY_HELD shows them. */
struct json_t *cli_json_text(const char *text);
/* What a terminal obeys becomes "?". */
void cli_disarm(char *text);

/* "250ms", "10s", "1m30s", "0": another number without a unit is refused. */
bool duration_parse(const char *text, int64_t *out_ms);

#endif
