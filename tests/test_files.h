/* tests/test_files.h -- a directory of its own for a test, and files in it. */
#ifndef GPST_TEST_FILES_H
#define GPST_TEST_FILES_H

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEST_PATH_BYTES = 1024 };
static char test_directory[256];

static inline void test_directory_make(void) {
    const char* parent = getenv("TMPDIR");
    snprintf(test_directory, sizeof(test_directory), "%s/gpstXXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(test_directory));
    assert_int_equal(chmod(test_directory, 0755), 0);
}

static inline const char* test_path(char* out, const char* name) {
    snprintf(out, TEST_PATH_BYTES, "%s/%s", test_directory, name);
    return out;
}

static inline unsigned test_directory_count(const char* path) {
    DIR* directory = opendir(path);
    unsigned count = 0;
    const struct dirent* entry;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

/* One level of files and empty directories. */
static inline void test_directory_remove(void) {
    char path[TEST_PATH_BYTES];
    DIR* directory = opendir(test_directory);
    const struct dirent* entry;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(path, sizeof(path), "%s/%s", test_directory, entry->d_name);
            (void)remove(path);
        }
    closedir(directory);
    assert_int_equal(rmdir(test_directory), 0);
}

static inline unsigned char* test_bytes(size_t bytes, uint64_t seed) {
    unsigned char* data = (unsigned char*)malloc(bytes ? bytes : 1);
    size_t k;
    assert_non_null(data);
    for (k = 0; k < bytes; ++k)
        data[k] = (unsigned char)test_random(&seed);
    return data;
}

static inline void test_file_make(const char* path, const void* data, size_t bytes) {
    FILE* file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void test_file_check(const char* path, const void* data, size_t bytes) {
    FILE* file = fopen(path, "rb");
    unsigned char* seen = (unsigned char*)malloc(bytes + 1);
    assert_non_null(file);
    assert_int_equal(fread(seen, 1, bytes + 1, file), bytes);
    assert_memory_equal(seen, data, bytes);
    fclose(file);
    free(seen);
}

#endif
