/* tools/gpustage/files.h -- what the command asks of the file system and the terminal, on every system. */
#ifndef GPST_TOOL_FILES_H
#define GPST_TOOL_FILES_H

#include "text.h"

typedef struct file_info {
    bool is_regular, is_directory;
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t device, inode; /* together they name the file; both 0 where the system does not tell */
} file_info;

/* These return NULL, or the system's words for what went wrong. */
const char* files_query(const char* path, file_info* out);
const char* files_make_directory(const char* path);
const char* files_check_writable(const char* directory);
const char* files_list(const char* directory,
                       text_list* out); /* names without "." and "..", as the system gives them */
const char* files_read(const char* path, text* out); /* the whole file */
/* Likewise; of more than most_bytes it is refused: a device may never end. */
const char* files_read_at_most(const char* path, size_t most_bytes, text* out);
/* Whole or absent: under a temporary name, then renamed. What is no regular file (a terminal, a pipe) is
   written to. */
const char* files_write_whole(const char* path, const void* data, size_t bytes);
const char* files_rename(const char* from, const char* to); /* replaces */
void files_remove(const char* path);
void files_remove_directory(const char* path); /* an empty one */
const char* files_append(const char* path, const void* data,
                         size_t bytes); /* in one write; made when absent */
const char* files_truncate(const char* path, uint64_t bytes);
/* Takes a file out of the page cache: how many of 100 of its pages are there all the same; -1: this system does not
   tell. */
int files_drop_cached(const char* path);

/* A file that several threads write at places of their own. */
typedef struct place_file {
    int descriptor;
} place_file;
const char* files_place_create(const char* path, uint64_t bytes,
                               place_file* out); /* zeroes; must not exist */
const char* files_place_write(const place_file* self, const void* data, size_t bytes, uint64_t offset,
                              size_t* written);
const char* files_place_close(place_file* self, bool sync);

const char* files_base_name(const char* path);           /* what is behind the last separator */
bool files_same_directory(const char* a, const char* b); /* both exist and are the same */
text files_parent(const char* path);                     /* "." when the path names none; text_free */
text files_temporary_beside(const char* path); /* a name of this process in the same directory; text_free */

bool files_process_is_gone(unsigned long id); /* false: it is there, or cannot be asked for */
bool files_is_terminal(int descriptor);
int64_t files_clock_ns(void); /* monotonic */

#endif
