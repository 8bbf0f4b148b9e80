/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a server over its Unix socket, with hiredis. */
#ifndef LK_TEST_LOOK_H
#define LK_TEST_LOOK_H

#include <hiredis/hiredis.h>
#include <stdarg.h>

/* NULL: nobody listens there, or the password is refused. NULL for none. */
redisContext *look_open(const char *path, const char *password);
/* What is answered; NULL: the connection is lost. The server may close it at any moment. */
redisReply *look_ask(redisContext *look, const char *format, va_list args);
redisReply *look_say(redisContext *look, const char *format, ...);

#endif
