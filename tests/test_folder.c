/* tests/test_folder.c -- what lies in a folder, in order. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct seen {
    char text[400];
    uint32_t n, most;
} seen;

static bool see(void* user_data, const char* path, bool is_picture) {
    seen* const self = (seen*)user_data;
    const char* const name = strrchr(path, '/') + 1;
    snprintf(self->text + strlen(self->text), sizeof self->text - strlen(self->text), "%s%s ", name,
             is_picture ? "*" : "");
    return ++self->n < self->most;
}

static void test_list(void** state) {
    static const char* const names[] = {"b.JPEG", "B.npy",  "a.png",  "c.TIFF", ".a.png", "jpg",    "d.pnmx", "e.pam",
                                        "f.insp", "f.jfif", "f.jpe",  "f.tif",  "f.webp", "g.heic", "g.ti",   "g."};
    const size_t n_names = sizeof names / sizeof names[0];
    char dir[] = "/tmp/gpustage-folder-XXXXXX", path[80];
    seen all = GPST_ZERO, two = GPST_ZERO;
    (void)state;
    all.most = 100;
    two.most = 2;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < n_names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        FILE* const file = fopen(path, "wb");
        assert_non_null(file);
        fclose(file);
    }
    snprintf(path, sizeof path, "%s/folder.png", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(gpst_folder_list(dir, see, &all), GPST_OK);
    assert_string_equal(all.text, "B.npy* a.png* b.JPEG* c.TIFF* d.pnmx e.pam* f.insp* f.jfif* f.jpe* f.tif* f.webp* g. g.heic g.ti jpg ");
    assert_int_equal(gpst_folder_list(dir, see, &two), GPST_OK);
    assert_string_equal(two.text, "B.npy* a.png* ");
    assert_int_equal(rmdir(path), 0);
    for (size_t i = 0; i < n_names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(gpst_folder_list(dir, see, &all), GPST_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpst_last_reason(), "list \"/tmp/gpustage-folder-"));
    assert_int_equal(gpst_folder_list("", see, &all), GPST_ERROR_ARGUMENT);
}

/* What may never end is no picture, whatever it is called, nor a link to it; a link that leads nowhere fails by itself. */
static void test_no_files(void** state) {
    static const char* const names[] = {"fifo.png", "null.png", "to_fifo.png", "nowhere.png"};
    static const char* const targets[] = {NULL, "/dev/null", "fifo.png", "none"};
    char dir[] = "/tmp/gpustage-folder-XXXXXX", path[80];
    seen all = GPST_ZERO;
    (void)state;
    all.most = 100;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(targets[i] ? symlink(targets[i], path) : mkfifo(path, 0600), 0);
    }
    assert_int_equal(gpst_folder_list(dir, see, &all), GPST_OK);
    assert_string_equal(all.text, "fifo.png nowhere.png* null.png to_fifo.png ");
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_no_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
