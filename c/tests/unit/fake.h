/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on a loopback port that does what a real one does not do on demand: late, lost, half and
 * wrong replies. A thread speaks for it. What belongs to opening a client it answers by itself
 * (CLIENT, AUTH, SELECT, PING, SCRIPT LOAD, SUBSCRIBE, UNSUBSCRIBE); every other command is the
 * test's to take, and to answer at once, later, wrongly or never.
 */
#ifndef LK_TEST_FAKE_H
#define LK_TEST_FAKE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

typedef struct fake fake;

typedef struct fake_command {
  int link;         /* the connection that it came on */
  redisReply *argv; /* an array of strings */
} fake_command;

fake *fake_open(void);
void fake_close(fake *f);
const char *fake_url(const fake *f);

/* The next command that waits for the test; fails the test when none comes for 10 s. */
fake_command fake_take(fake *f);
/* The same, for the EVALSHA of the script with this name. */
fake_command fake_take_script(fake *f, const char *script);
/* Is no command waiting? */
bool fake_is_idle(fake *f);
/* Argument number `index` of a script's call. */
const char *fake_arg(const fake_command *command, size_t index);

/* Send any bytes as (a piece of) the reply. */
void fake_send(fake *f, const fake_command *command, const char *bytes);
/* Of a SUBSCRIBE: its confirmation, as of the other verbs of this kind, and a message on its channel. */
void fake_confirm(fake *f, const fake_command *subscribe);
void fake_tell(fake *f, const fake_command *subscribe, const char *text);
/* Close the connection that the command came on. */
void fake_hang_up(fake *f, const fake_command *command);
/* Free the command. */
void fake_forget(fake_command *command);
/* Send the bytes as the reply, and free the command. */
void fake_answer(fake *f, fake_command command, const char *bytes);

/* Close every connection and refuse new ones until told otherwise. */
void fake_refuse(fake *f, bool refuse);
/* From now on the commands with this name are the test's, too; "*": all. */
void fake_leave(fake *f, const char *name);

#endif
