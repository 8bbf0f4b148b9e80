/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, output and error: those that this program was started without, and why a result is not written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static bool closed[3];
static int failure; /* errno of the first write that failed; 0: none has */

/* stdio keeps only that a write has failed, and others have failed since. */
static ssize_t put(void *unused, const char *bytes, size_t size) {
  (void)unused;
  size_t done = 0;
  while (done < size) {
    const ssize_t written = write(STDOUT_FILENO, bytes + done, size - done);
    if (written >= 0) {
      done += (size_t)written;
    } else if (errno != EINTR) {
      if (!failure) failure = errno;
      break;
    }
  }
  return (ssize_t)done;
}

void standard_open(void) {
  /* What is read from a closed standard input, or written to a closed output, shall fail as it does there. */
  static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int fd = 0; fd < 3; fd++) {
    closed[fd] = fcntl(fd, F_GETFD) < 0;
    if (closed[fd]) open("/dev/null", modes[fd]);
  }
  FILE *own = fopencookie(NULL, "w", (cookie_io_functions_t){.write = put});
  if (!own) return;
  setvbuf(own, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
  stdout = own;
}

bool standard_is_closed(int fd) { return closed[fd]; }

int standard_written(int code) {
  const bool failed = fflush(stdout) != 0 || ferror(stdout);
  if (!failed) return code;
  fprintf(stderr, "latchkey: the result could not be written: %s\n",
          strerror(failure ? failure : errno));
  return CLI_UNWRITTEN;
}
