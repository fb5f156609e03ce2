/* core/device/device_internal.h -- what the public device, stream and event are, over a backend's. */
#ifndef GPSTI_DEVICE_INTERNAL_H
#define GPSTI_DEVICE_INTERNAL_H

#include "../../backends/backend.h"
#include "device.h"
#include "stream.h"

struct gpst_device {
    gpsti_device* device;
    gpsti_host* host;      /* the context's, or own_host */
    gpst_context* context; /* NULL: opened by itself */
    gpsti_a32* fork_guard; /* the context's where there is one; NULL: processes are told apart by their number */
    const char* reason;    /* the context's, or own_reason */
    gpsti_device_info info; /* as it was when opened */
    uint32_t n_threads;    /* of a kernel that the host computes at once */
    gpsti_a64 n_objects;
};

struct gpst_stream {
    gpst_device* device;
    gpsti_stream* stream;
};

struct gpst_event {
    gpst_device* device;
    gpsti_event* event;
};

GPSTI_INTERN bool gpsti_device_forked(const gpst_device* device);
/* ARGUMENT for NULL; FORKED in a child of the process that opened it. */
GPSTI_INTERN gpst_result gpsti_device_check(const gpst_device* device, const char* function);
GPSTI_INTERN gpst_result gpsti_stream_check(const gpst_stream* stream, const char* function);
/* Puts "function: " before the backend's reason, where it failed. */
GPSTI_INTERN gpst_result gpsti_device_result(gpst_result result, const char* function);
/* Zeroed metadata of an object of the device, which counts as one until it is freed; NULL with the reason set. */
GPSTI_INTERN void* gpsti_device_add_object(gpst_device* device, size_t bytes, const char* function);
GPSTI_INTERN void gpsti_device_drop_object(gpst_device* device, void* object, size_t bytes);

#endif
