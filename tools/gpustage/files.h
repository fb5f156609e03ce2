/* tools/gpustage/files.h -- what the command asks of the file system and the terminal, on every system. */
#ifndef GPST_TOOL_FILES_H
#define GPST_TOOL_FILES_H

#include "text.h"

typedef struct file_info {
    bool is_regular, is_directory;
    uint64_t bytes;
    int64_t mtime_ns; /* -1: before 1970, or after 2262 */
    uint64_t device, inode; /* together they name the file; both 0 where the system does not tell */
    uint64_t n_names;       /* of the file; 0: it was removed */
} file_info;

/* These return NULL, or the system's words for what went wrong. */
const char* files_query(const char* path, file_info* out);
/* Directories, each once, whatever links lead there. All-zero is empty; free the items. */
typedef struct folder_set {
    file_info* items;
    size_t count;
    bool failed; /* out of memory */
} folder_set;
bool files_enter(folder_set* self, const char* path); /* false: it was entered before, or failed is set */
const char* files_make_directory(const char* path);
const char* files_check_writable(const char* directory);
const char* files_list(const char* directory,
                       text_list* out); /* names without "." and "..", as the system gives them */
const char* files_read(const char* path, text* out); /* the whole file */
/* Likewise; of more than most_bytes it is refused: a device may never end. */
const char* files_read_at_most(const char* path, size_t most_bytes, text* out);
/* The first so many bytes of a file that has them. */
const char* files_read_into(const char* path, void* out, size_t bytes);
/* files_read_at_most of a regular file alone, and of no link: never waits. */
const char* files_read_regular(const char* path, size_t most_bytes, text* out);
/* How many bytes of its beginning, up to most_bytes, came; 0 of what is no file, or cannot be read. */
size_t files_read_beginning(const char* path, void* out, size_t most_bytes);
/* Whole or absent: under a temporary name, then renamed. What is no regular file (a terminal, a pipe) is
   written to. */
const char* files_write_whole(const char* path, const void* data, size_t bytes);
void files_remove(const char* path);
void files_remove_directory(const char* path); /* an empty one */

/* Descriptors 0, 1 and 2 that are closed become /dev/null, so that no file of ours takes their place. Called first. */
void files_open_standard(void);
#if defined(_WIN32)
char** files_arguments(int n, wchar_t** wide); /* in UTF-8; NULL: no memory; kept until the process ends */
#endif

typedef struct open_file {
    int descriptor; /* -1: closed */
    bool locked;    /* false where the disk knows no locks */
} open_file;
bool files_is_open(const open_file* self, const file_info* info); /* is it that file? */
void files_close(open_file* self); /* a second time is a no-op */

/* A file that is made here is locked while it is open. When its process ends, however it ends, the lock is gone, and
   the next run knows by that what it may remove. path must not exist. */
const char* files_create_locked(const char* path, open_file* out);
/* Opens a file whose maker is gone, and locks it; false: it is alive, or cannot be asked. */
bool files_take_abandoned(const char* path, open_file* out);
/* A locked file beside another one, with a name that no other has; path: text_free. */
const char* files_create_temporary(const char* beside, text* path, open_file* out);
#define FILES_TEMPORARY ".part" /* how such a name ends; all begin with .gpustage- */
void files_discard(open_file* self, const char* path); /* removed, and closed */
/* It gets its name, replacing what had it, or is removed; closed in any case. */
const char* files_become(open_file* self, const char* temporary, const char* path, bool sync);

/* A list that is read and then only grows, through the same descriptor. Made when absent; never waits, and a link is
   refused. */
const char* files_open_list(const char* path, open_file* out, text* contents);
const char* files_list_add(const open_file* self, const void* data, size_t bytes); /* in one write */
const char* files_list_clear(const open_file* self);
const char* files_list_sync(const open_file* self); /* on the disk when this returns */

const char* files_base_name(const char* path);           /* what is behind the last separator */
bool files_is_link(const char* path); /* itself, not what it leads to */
bool files_same_directory(const char* a, const char* b); /* both exist and are the same */
text files_parent(const char* path);                     /* "." when the path names none; text_free */
char* files_real_path(const char* path);                 /* absolute, links followed; NULL: there is none; free */

bool files_is_terminal(int descriptor);
int64_t files_clock_ns(void); /* monotonic */
void files_sleep_ns(int64_t duration_ns);

#endif
