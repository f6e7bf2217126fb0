// Kills the process in which it is loaded (LD_PRELOAD) at its n-th call of a class, with SIGKILL, before the kernel is asked.
//
//   CRASH_CALL   write: whatever changes a file; fsync: what makes it durable; send: what goes into a socket
//   CRASH_AT     n, counted over all threads from the first one on; 0 only counts
//   CRASH_TORN   1: half of the bytes go out before
//   CRASH_REPORT where the process says what it died of, or at its end how often each class was called
//
// Pipes, eventfds and local sockets are left out: through them go only threads and the log.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { NONE, WRITE, FSYNC, SEND };
static const char *const names[] = {"none", "write", "fsync", "send"};
static enum call killed_at;
static long at;
static int is_torn;
static char report_file[4096];
static atomic_long counts[4];

__attribute__((constructor)) static void configure(void) {
  const char *call = getenv("CRASH_CALL"), *n = getenv("CRASH_AT");
  const char *torn = getenv("CRASH_TORN"), *file = getenv("CRASH_REPORT");
  if (file != NULL) snprintf(report_file, sizeof report_file, "%s", file);
  for (int each = WRITE; call != NULL && each <= SEND; each++)
    if (strcmp(call, names[each]) == 0) killed_at = each;
  at = n == NULL ? 0 : atol(n);
  is_torn = torn != NULL && strcmp(torn, "1") == 0;
  // Children of the process, such as a compiler, are not meant.
  unsetenv("LD_PRELOAD");
}

/** Straight to the kernel, which counts nothing. */
static void report(const char *text) {
  if (report_file[0] == '\0') return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, report_file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) return;
  syscall(SYS_write, fd, text, strlen(text));
  syscall(SYS_close, fd);
}

__attribute__((destructor)) static void tell_counts(void) {
  char text[256];
  snprintf(text, sizeof text, "ended write %ld fsync %ld send %ld\n", counts[WRITE], counts[FSYNC], counts[SEND]);
  report(text);
}

/** Who gets what goes into a file or socket. */
static void place_of(int fd, char *place, size_t size) {
  char link[64];
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0) {
    const unsigned char *in = (const unsigned char *)&peer;
    snprintf(place, size, "port %d", in[2] * 256 + in[3]);
    return;
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t read = readlink(link, place, size - 1);
  place[read < 0 ? 0 : read] = '\0';
}

/** What a parent gives for a pipe. */
static int is_local(int fd) {
  struct sockaddr_storage own;
  socklen_t length = sizeof own;
  return getsockname(fd, (struct sockaddr *)&own, &length) == 0 && own.ss_family == AF_UNIX;
}

static enum call call_of(int fd) {
  struct stat it;
  if (syscall(SYS_fstat, fd, &it) != 0) return NONE;
  if (S_ISREG(it.st_mode)) return WRITE;
  return S_ISSOCK(it.st_mode) && !is_local(fd) ? SEND : NONE;
}

/** Counts a call; true for the one at which the process dies. */
static int is_due(enum call call) {
  if (call == NONE) return 0;
  return atomic_fetch_add(&counts[call], 1) + 1 == at && call == killed_at;
}

static void die(const char *name, const char *place) {
  char text[4608];
  snprintf(text, sizeof text, "killed %s %ld %s %s\n", names[killed_at], at, name, place);
  report(text);
  for (;;) syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
}

static void die_on(const char *name, int fd) {
  char place[4096];
  place_of(fd, place, sizeof place);
  die(name, place);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REAL(name)                       \
  static __typeof__(&name) real;         \
  if (real == NULL) real = NEXT(name)

ssize_t write(int fd, const void *bytes, size_t size) {
  REAL(write);
  if (is_due(call_of(fd))) {
    if (is_torn) real(fd, bytes, size / 2);
    die_on("write", fd);
  }
  return real(fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  if (is_due(call_of(fd))) {
    if (is_torn && count > 1) real(fd, parts, count / 2);
    if (is_torn && count == 1) NEXT(write)(fd, parts->iov_base, parts->iov_len / 2);
    die_on("writev", fd);
  }
  return real(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
  REAL(pwrite64);
  if (is_due(WRITE)) {
    if (is_torn) real(fd, bytes, size / 2, offset);
    die_on("pwrite64", fd);
  }
  return real(fd, bytes, size, offset);
}

int ftruncate64(int fd, off64_t length) {
  REAL(ftruncate64);
  if (is_due(WRITE)) die_on("ftruncate64", fd);
  return real(fd, length);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  if (is_due(WRITE)) die("rename", to);
  return real(from, to);
}

int unlink(const char *name) {
  REAL(unlink);
  if (is_due(WRITE)) die("unlink", name);
  return real(name);
}

int fsync(int fd) {
  REAL(fsync);
  if (is_due(FSYNC)) die_on("fsync", fd);
  return real(fd);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  if (is_due(FSYNC)) die_on("fdatasync", fd);
  return real(fd);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags) {
  REAL(send);
  if (is_due(SEND)) {
    if (is_torn) real(fd, bytes, size / 2, flags);
    die_on("send", fd);
  }
  return real(fd, bytes, size, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
  REAL(sendto);
  if (is_due(SEND)) die_on("sendto", fd);
  return real(fd, bytes, size, flags, to, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  if (is_due(SEND)) die_on("sendmsg", fd);
  return real(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags) {
  REAL(sendmmsg);
  if (is_due(SEND)) die_on("sendmmsg", fd);
  return real(fd, messages, count, flags);
}
