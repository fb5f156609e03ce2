/* tests/test_backend_cpu.c -- the cpu backend keeps the device contract. */
#include "test_backend.h"

static const test_backend* test_subject(void) {
    static test_backend subject;
    subject.i = gpsti_backend_cpu();
    subject.params = NULL;
    subject.zero_copy = true;
    subject.asynchronous = false;
    return &subject;
}

static void cpu_takes_no_parameters(void** state) {
    gpsti_host host;
    gpsti_device* device = NULL;
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    assert_int_equal(gpsti_backend_cpu()->device_open(&host, "x=1", &device), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "\"x=1\""));
    assert_int_equal(gpsti_backend_cpu()->device_open(&host, "", &device), GPST_OK);
    gpsti_backend_cpu()->device_close(device);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

/* Upload and download may be left out, so a copy onto itself must be one that does nothing. */
static void cpu_runs_at_submission(void** state) {
    test_device t;
    (void)state;
    test_device_open(&t, gpsti_backend_cpu(), NULL);
    uint64_t* value = test_new_value(&t);
    test_launch_step(&t, t.stream, value, 4);
    assert_int_equal(*value, 4);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, value, value, sizeof(*value)), GPST_OK);
    assert_int_equal(*value, 4);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST_BACKEND_CONTRACT, cmocka_unit_test(cpu_takes_no_parameters),
                                       cmocka_unit_test(cpu_runs_at_submission)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
