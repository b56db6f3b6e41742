// SPDX-License-Identifier: Apache-2.0
// To be preloaded: reads of files whose names end as $HANG_FILES says hang, as long as there is a
// file $HANG_WHILE.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void hang(int fd) {
  const char* ending = getenv("HANG_FILES");
  const char* flag = getenv("HANG_WHILE");
  char link[64];
  char path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof(path));
  const ssize_t end = ending == NULL ? 0 : (ssize_t)strlen(ending);
  if (flag == NULL || end == 0 || size < end || memcmp(path + size - end, ending, end) != 0) return;
  while (access(flag, F_OK) == 0) usleep(5000);
}

typedef ssize_t (*read_at)(int, void*, size_t, off_t);

ssize_t pread(int fd, void* out, size_t size, off_t offset) {
  hang(fd);
  return ((read_at)dlsym(RTLD_NEXT, "pread"))(fd, out, size, offset);
}

ssize_t pread64(int fd, void* out, size_t size, off_t offset) {
  hang(fd);
  return ((read_at)dlsym(RTLD_NEXT, "pread64"))(fd, out, size, offset);
}
