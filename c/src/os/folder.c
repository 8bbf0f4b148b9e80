/* SPDX-License-Identifier: Apache-2.0 */
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_whole(FILE *file, size_t most, char **out, size_t *len) {
  struct stat about;
  if (fstat(fileno(file), &about) < 0) return errno;
  if (!S_ISREG(about.st_mode)) return EINVAL;
  if (about.st_size > (off_t)most) return EFBIG;
  size_t size = (size_t)about.st_size;
  char *text = malloc(size + 1);
  if (!text) return ENOMEM;
  if (fread(text, 1, size, file) != size) {
    free(text);
    return EIO;
  }
  text[size] = '\0';
  *out = text;
  *len = size;
  return 0;
}

/* A FIFO without a writer would keep its reader for ever. */
int lk_file_read(const char *path, size_t most, char **out, size_t *len) {
  *out = NULL;
  *len = 0;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno;
  FILE *file = fdopen(fd, "rb");
  if (!file) {
    close(fd);
    return ENOMEM;
  }
  int failure = read_whole(file, most, out, len);
  fclose(file);
  return failure;
}

lk_folder *lk_folder_open(const char *path, int *failure) {
  DIR *folder = opendir(path);
  if (!folder) *failure = errno;
  return (lk_folder *)folder;
}

const char *lk_folder_next(lk_folder *folder, int *failure) {
  errno = 0;
  const struct dirent *entry = readdir((DIR *)folder);
  *failure = entry ? 0 : errno;
  return entry ? entry->d_name : NULL;
}

void lk_folder_close(lk_folder *folder) { closedir((DIR *)folder); }

lk_path_kind lk_path_look(const char *path, int *failure) {
  struct stat about;
  *failure = 0;
  if (stat(path, &about) == 0) return S_ISDIR(about.st_mode) ? LK_PATH_FOLDER : LK_PATH_FILE;
  if (errno != ENOENT) *failure = errno;
  return LK_PATH_NONE;
}
