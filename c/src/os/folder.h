/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders that are read whole. */
#ifndef LK_FOLDER_H
#define LK_FOLDER_H

#include <stddef.h>

/* What is in a file of at most so many bytes, and a NUL behind it, to be freed. 0; EFBIG: it is larger;
 * EINVAL: it is no regular file; ENOMEM; EIO: it was not read to its end; or another errno. */
int lk_file_read(const char *path, size_t most, char **out, size_t *len);

typedef struct lk_folder lk_folder;
/* NULL: *failure, an errno, says why. */
lk_folder *lk_folder_open(const char *path, int *failure);
/* The next name, until the call after it; NULL: that was all, unless *failure is an errno. */
const char *lk_folder_next(lk_folder *folder, int *failure);
void lk_folder_close(lk_folder *folder);

typedef enum lk_path_kind { LK_PATH_NONE, LK_PATH_FOLDER, LK_PATH_FILE } lk_path_kind;
/* LK_PATH_NONE: there is nothing, or *failure, an errno, says why that is not known. */
lk_path_kind lk_path_look(const char *path, int *failure);

#endif
