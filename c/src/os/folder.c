/* SPDX-License-Identifier: Apache-2.0 */
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int read_whole(FILE *file, size_t most, char **out, size_t *len) {
  struct stat about;
  if (fstat(fileno(file), &about) < 0) return errno;
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

int lk_file_read(const char *path, size_t most, char **out, size_t *len) {
  *out = NULL;
  *len = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return errno;
  int failure = read_whole(file, most, out, len);
  fclose(file);
  return failure;
}

lk_folder *lk_folder_open(const char *path, int *failure) {
  DIR *folder = opendir(path);
  if (!folder) *failure = errno;
  return (lk_folder *)folder;
}

const char *lk_folder_next(lk_folder *folder) {
  const struct dirent *entry = readdir((DIR *)folder);
  return entry ? entry->d_name : NULL;
}

void lk_folder_close(lk_folder *folder) { closedir((DIR *)folder); }

lk_path_kind lk_path_look(const char *path) {
  struct stat about;
  if (stat(path, &about) < 0) return LK_PATH_NONE;
  return S_ISDIR(about.st_mode) ? LK_PATH_FOLDER : LK_PATH_FILE;
}
