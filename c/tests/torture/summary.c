/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include "options.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct evidence {
  history_file *parent;
  history_file **files;
  stream *processes;
  size_t process_count;
  stream logs[LOCKS_MAX];
  size_t lock_count;
} evidence;

static stream stream_of(const history_file *file) {
  return (stream){file->records, history_count(file)};
}

static bool read_log(const char *path, stream *out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  *out = (stream){NULL, 0};
  if (fstat(fd, &info) == 0) out->count = (size_t)info.st_size / sizeof(record);
  if (out->count) {
    void *memory = mmap(NULL, out->count * sizeof(record), PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
      out->count = 0;
    else
      out->records = memory;
  }
  close(fd);
  return true;
}

static bool read_evidence(const char *folder, evidence *e) {
  char path[PATH_SIZE];
  path_of_history(folder, -1, path);
  *e = (evidence){.parent = history_open(path)};
  if (!e->parent) {
    perror(path);
    return false;
  }
  for (int i = 0;; i++) {
    path_of_history(folder, i, path);
    history_file *file = history_open(path);
    if (!file) break;
    e->files = realloc(e->files, (e->process_count + 1) * sizeof *e->files);
    e->processes = realloc(e->processes, (e->process_count + 1) * sizeof *e->processes);
    if (!e->files || !e->processes) return false;
    e->files[e->process_count] = file;
    e->processes[e->process_count++] = stream_of(file);
  }
  for (; e->lock_count < LOCKS_MAX; e->lock_count++) {
    path_of_log(folder, (int)e->lock_count, path);
    if (!read_log(path, &e->logs[e->lock_count])) break;
  }
  return true;
}

static void drop_evidence(evidence *e) {
  for (size_t i = 0; i < e->process_count; i++) history_close(e->files[i]);
  for (size_t i = 0; i < e->lock_count; i++)
    if (e->logs[i].count)
      munmap((void *)(uintptr_t)e->logs[i].records, e->logs[i].count * sizeof(record));
  history_close(e->parent);
  free(e->files);
  free(e->processes);
}

static void print_violations(const verdict *v) {
  for (int kind = 0; kind < VIOLATION_KINDS; kind++) {
    if (!v->violations[kind]) continue;
    printf("FAIL %s (%zu): %s\n", violation_name((violation)kind), v->violations[kind],
           violation_text((violation)kind));
    for (size_t i = 0; i < v->shown; i++)
      if (v->example[i].kind == (violation)kind) printf("     %s\n", v->example[i].text);
  }
}

static void print_faults(const verdict *v) {
  printf("  faults       ");
  for (int kind = 0; kind < FAULT_KINDS; kind++)
    if (kind < FAULT_TORTURE_KINDS || v->faults[kind])
      printf(" %s %zu", fault_name((fault_kind)kind), v->faults[kind]);
  printf("\n");
}

void summary_print(const verdict *v) {
  printf("  acquired      %zu times, re-entered %zu, lost %zu, unsure %zu\n", v->acquisitions,
         v->reentries, v->lost, v->unsure);
  printf("  compared      %zu hold counts with the server's, %zu tokens with those before\n",
         v->inspections, v->tokens);
  printf("  writes        %zu under a valid hold, %zu late (fencing's task)\n", v->certain_writes,
         v->late_writes);
  if (v->admitted) printf("  admitted      %zu, refused %zu\n", v->admitted, v->refused);
  print_faults(v);
  printf("  longest       wait %" PRId64 " ms; free while waited for %" PRId64 " ms\n",
         v->longest_wait_ms, v->longest_free_ms);
  printf("  left behind   %zu with a lease\n", v->keys_left);
  print_violations(v);
  if (verdict_is_clean(v)) printf("PASS\n");
}

bool summary_judge(const char *folder, verdict *out) {
  evidence e;
  bool good = read_evidence(folder, &e);
  if (!good) return false;
  check_input input = {.processes = e.processes,
                       .process_count = e.process_count,
                       .parent = stream_of(e.parent),
                       .logs = e.logs,
                       .lock_count = e.lock_count,
                       .command_ms = COMMAND_MS,
                       .recovery_ms = RECOVERY_MS,
                       .wake_ms = WAKE_MS};
  good = check_run(&input, out);
  if (!good) fprintf(stderr, "torture: out of memory\n");
  drop_evidence(&e);
  return good;
}

bool summary_of(const char *folder) {
  verdict v;
  if (!summary_judge(folder, &v)) return false;
  summary_print(&v);
  return verdict_is_clean(&v);
}
