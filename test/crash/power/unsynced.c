/*
 * A layer between a process and its files that remembers how to undo every write since the last sync of the file. It is loaded with
 * LD_PRELOAD and looks at files whose path begins with UNSYNCED_FOLDER and ends with ".db" or "-wal". Notes go to the file UNSYNCED_NOTES,
 * which a kill can't take back: the process that plays the power cut reads them and undoes what no sync covers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITTEN = 1, SYNCED = 2 };

/* As the reader expects it: eight bytes each, in the order of the machine. Then the path, then the old bytes. */
struct note {
  int64_t kind, order, offset, old_size, old_length, path_length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t order = 0;
static int notes = -1;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

static int ends_with(const char *text, size_t length, const char *end) {
  size_t size = strlen(end);
  return length >= size && memcmp(text + length - size, end, size) == 0;
}

/* The length of the path if the file is one of those; 0 if not. */
static size_t watched(int fd, char *path, size_t room) {
  const char *folder = getenv("UNSYNCED_FOLDER");
  if (!folder) return 0;
  char link[64] = "/proc/self/fd/";
  size_t at = strlen(link);
  char digits[16];
  int count = 0;
  for (int rest = fd; count == 0 || rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) link[at++] = digits[--count];
  link[at] = 0;
  ssize_t length = readlink(link, path, room);
  if (length <= 0 || strncmp(path, folder, strlen(folder)) != 0) return 0;
  return ends_with(path, (size_t)length, ".db") || ends_with(path, (size_t)length, "-wal") ? (size_t)length : 0;
}

static void put(const void *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t more = REAL(write)(notes, (const char *)bytes + done, length - done);
    if (more < 0) abort();
    done += (size_t)more;
  }
}

static void add(struct note note, const char *path, const void *old) {
  if (notes < 0) notes = open(getenv("UNSYNCED_NOTES"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (notes < 0) abort();
  put(&note, sizeof note);
  put(path, (size_t)note.path_length);
  put(old, (size_t)note.old_length);
}

/* Before bytes from `offset` on change, or the file ends there. */
static void remember(int fd, int64_t offset, int64_t length) {
  char path[4096];
  size_t path_length = watched(fd, path, sizeof path);
  if (path_length == 0) return;
  struct stat is;
  if (fstat(fd, &is) != 0) abort();
  int64_t there = is.st_size - offset;
  int64_t old_length = there < 0 ? 0 : length < 0 || there < length ? there : length;
  char *old = malloc((size_t)old_length + 1);
  if (!old || pread(fd, old, (size_t)old_length, offset) != old_length) abort();
  add((struct note){WRITTEN, ++order, offset, is.st_size, old_length, (int64_t)path_length}, path, old);
  free(old);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
  pthread_mutex_lock(&lock);
  remember(fd, offset, (int64_t)length);
  ssize_t done = REAL(pwrite64)(fd, bytes, length, offset);
  pthread_mutex_unlock(&lock);
  return done;
}

int ftruncate64(int fd, off64_t size) {
  pthread_mutex_lock(&lock);
  remember(fd, size, -1);
  int done = REAL(ftruncate64)(fd, size);
  pthread_mutex_unlock(&lock);
  return done;
}

/* What was written before the sync began is safe when it has ended. */
static int synced(int fd, int (*sync)(int)) {
  char path[4096];
  pthread_mutex_lock(&lock);
  size_t path_length = watched(fd, path, sizeof path);
  int64_t covers = order;
  pthread_mutex_unlock(&lock);
  int done = sync(fd);
  if (path_length == 0 || done != 0) return done;
  pthread_mutex_lock(&lock);
  add((struct note){SYNCED, covers, 0, 0, 0, (int64_t)path_length}, path, "");
  pthread_mutex_unlock(&lock);
  return done;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }
