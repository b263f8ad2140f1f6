/* Makes system calls on files fail, and records them; a test preloads it with LD_PRELOAD and drives it through ctypes.

   Only files below one folder count. A call is numbered when it is made; the one with the number `at` fails with `error`, in
   the mode FOREVER also all that follow. In the mode SHORT a write takes half of its bytes, and the next write fails. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, WRITE = 2, SYNC = 4, RENAME = 8, REMOVE = 16, TRUNCATE = 32, FOLDER = 64, READ = 128 };
enum { ONCE, FOREVER, SHORT };
#define MOST 65536

struct call { int kind; int failed; char path[240]; char other[240]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static int at, error, mode, kinds, count, calls_made;
static struct call calls[MOST];

/* An empty folder ends it; what was counted stays. */
void faulty_arm(const char *folder, int number, int errno_, int mode_, int kinds_) {
  pthread_mutex_lock(&lock);
  snprintf(root, sizeof root, "%s", folder);
  if (folder[0]) { at = number, error = errno_, mode = mode_, kinds = kinds_, count = 0, calls_made = 0; }
  pthread_mutex_unlock(&lock);
}

int faulty_count(void) { return count; }
int faulty_calls(void) { return calls_made; }
const struct call *faulty_call(int number) { return &calls[number]; }

void faulty_mark(const char *text) {
  pthread_mutex_lock(&lock);
  if (calls_made < MOST) {
    struct call *made = &calls[calls_made++];
    made->kind = 0, made->failed = 0, made->other[0] = 0;
    snprintf(made->path, sizeof made->path, "%s", text);
  }
  pthread_mutex_unlock(&lock);
}

/* Return 0, the number of the error to fail with, or -1 for a write of half of the bytes. */
static int hit(int kind, const char *path, const char *other) {
  if (!root[0] || !path || strncmp(path, root, strlen(root)) != 0) return 0;
  int fails = 0;
  pthread_mutex_lock(&lock);
  if (kinds & kind) {
    count++;
    fails = at && (mode == FOREVER ? count >= at : count == at) ? error : 0;
    if (fails && mode == SHORT) fails = -1, mode = ONCE, at++;
  }
  if (calls_made < MOST && kind != READ) {
    struct call *made = &calls[calls_made++];
    made->kind = kind, made->failed = fails > 0;
    snprintf(made->path, sizeof made->path, "%s", path + strlen(root));
    snprintf(made->other, sizeof made->other, "%s", other && strlen(other) > strlen(root) ? other + strlen(root) : "");
  }
  pthread_mutex_unlock(&lock);
  return fails;
}

static const char *path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length < 0) return NULL;
  path[length] = 0;
  return path;
}

static const char *absolute(int folder, const char *name, char *path) {
  if (!name || name[0] == '/') return name;
  char above[PATH_MAX];
  if (folder == AT_FDCWD ? !getcwd(above, sizeof above) : !path_of(folder, above)) return NULL;
  if (snprintf(path, PATH_MAX, "%s/%s", above, name) >= PATH_MAX) return NULL;
  return path;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define FAIL_IF(result) do { int fails_ = (result); if (fails_ > 0) { errno = fails_; return -1; } } while (0)

#define OPEN(name, parameters, folder, ...) \
  int name parameters { \
    REAL(name); char path[PATH_MAX]; mode_t mode_ = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode_ = va_arg(rest, mode_t); va_end(rest); } \
    FAIL_IF(hit(flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR) ? CREATE : READ, absolute(folder, file, path), NULL)); \
    return real(__VA_ARGS__, flags, mode_); \
  }
OPEN(open, (const char *file, int flags, ...), AT_FDCWD, file)
OPEN(open64, (const char *file, int flags, ...), AT_FDCWD, file)
OPEN(openat, (int folder, const char *file, int flags, ...), folder, folder, file)
OPEN(openat64, (int folder, const char *file, int flags, ...), folder, folder, file)

#define WRITE_CALL(name, parameters, halved, ...) \
  ssize_t name parameters { \
    REAL(name); char path[PATH_MAX]; \
    int fails = root[0] ? hit(WRITE, path_of(fd, path), NULL) : 0; \
    FAIL_IF(fails); \
    if (fails < 0) { halved; } \
    return real(__VA_ARGS__); \
  }
WRITE_CALL(write, (int fd, const void *data, size_t size), size = (size + 1) / 2, fd, data, size)
WRITE_CALL(pwrite, (int fd, const void *data, size_t size, off_t place), size = (size + 1) / 2, fd, data, size, place)
WRITE_CALL(pwrite64, (int fd, const void *data, size_t size, off64_t place), size = (size + 1) / 2, fd, data, size, place)
WRITE_CALL(writev, (int fd, const struct iovec *parts, int size), size = (size + 1) / 2, fd, parts, size)
WRITE_CALL(sendfile, (int fd, int from, off_t *place, size_t size), size = (size + 1) / 2, fd, from, place, size)
WRITE_CALL(sendfile64, (int fd, int from, off64_t *place, size_t size), size = (size + 1) / 2, fd, from, place, size)
ssize_t copy_file_range(int from, off64_t *a, int fd, off64_t *b, size_t size, unsigned flags) {
  REAL(copy_file_range); char path[PATH_MAX];
  FAIL_IF(root[0] ? hit(WRITE, path_of(fd, path), NULL) : 0);
  return real(from, a, fd, b, size, flags);
}

#define READ_CALL(name, parameters, ...) \
  ssize_t name parameters { \
    REAL(name); char path[PATH_MAX]; \
    FAIL_IF(root[0] && kinds & READ ? hit(READ, path_of(fd, path), NULL) : 0); \
    return real(__VA_ARGS__); \
  }
READ_CALL(read, (int fd, void *data, size_t size), fd, data, size)
READ_CALL(pread, (int fd, void *data, size_t size, off_t place), fd, data, size, place)
READ_CALL(pread64, (int fd, void *data, size_t size, off64_t place), fd, data, size, place)

#define FILE_CALL(kind, name, parameters, ...) \
  int name parameters { \
    REAL(name); char path[PATH_MAX]; \
    FAIL_IF(root[0] ? hit(kind, path_of(fd, path), NULL) : 0); \
    return real(__VA_ARGS__); \
  }
FILE_CALL(SYNC, fsync, (int fd), fd)
FILE_CALL(SYNC, fdatasync, (int fd), fd)
FILE_CALL(TRUNCATE, ftruncate, (int fd, off_t size), fd, size)
FILE_CALL(TRUNCATE, ftruncate64, (int fd, off64_t size), fd, size)
FILE_CALL(WRITE, fallocate, (int fd, int how, off_t place, off_t size), fd, how, place, size)
int posix_fallocate(int fd, off_t place, off_t size) {
  REAL(posix_fallocate); char path[PATH_MAX];
  int fails = root[0] ? hit(WRITE, path_of(fd, path), NULL) : 0;
  return fails > 0 ? fails : real(fd, place, size);
}

#define NAME_CALL(kind, name, parameters, folder, ...) \
  int name parameters { \
    REAL(name); char path[PATH_MAX]; \
    FAIL_IF(hit(kind, absolute(folder, file, path), NULL)); \
    return real(__VA_ARGS__); \
  }
NAME_CALL(REMOVE, unlink, (const char *file), AT_FDCWD, file)
NAME_CALL(REMOVE, unlinkat, (int folder, const char *file, int flags), folder, folder, file, flags)
NAME_CALL(REMOVE, rmdir, (const char *file), AT_FDCWD, file)
NAME_CALL(FOLDER, mkdir, (const char *file, mode_t how), AT_FDCWD, file, how)
NAME_CALL(FOLDER, mkdirat, (int folder, const char *file, mode_t how), folder, folder, file, how)

#define PAIR_CALL(name, parameters, from, to, ...) \
  int name parameters { \
    REAL(name); char path[PATH_MAX], other[PATH_MAX]; \
    FAIL_IF(hit(RENAME, absolute(from, file, path), absolute(to, target, other))); \
    return real(__VA_ARGS__); \
  }
PAIR_CALL(rename, (const char *file, const char *target), AT_FDCWD, AT_FDCWD, file, target)
PAIR_CALL(renameat, (int from, const char *file, int to, const char *target), from, to, from, file, to, target)
PAIR_CALL(renameat2, (int from, const char *file, int to, const char *target, unsigned flags), from, to, from, file, to, target, flags)
PAIR_CALL(link, (const char *file, const char *target), AT_FDCWD, AT_FDCWD, file, target)
PAIR_CALL(linkat, (int from, const char *file, int to, const char *target, int flags), from, to, from, file, to, target, flags)
