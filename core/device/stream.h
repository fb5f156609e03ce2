/* core/device/stream.h -- what a device does in order: streams, events between them, copies. The same program on every
   backend; on cpu each call is done when it returns. */
#ifndef GPSTI_STREAM_H
#define GPSTI_STREAM_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_stream gpst_stream;
typedef struct gpst_event gpst_event;

/* Work of one stream is done in the order in which it was put there; work of two may overlap, unless an event says
   otherwise. Work that fails later than its own call is told of once: by the next gpst_stream_synchronize of its
   stream. */

/* gpst_stream_create -- a stream of the device's; gpst_stream_wrap -- one that the host application has

   Parameters   device  (in)   not NULL
                native  (in)   cudaStream_t or hipStream_t of this device, and on CUDA of the context that it works in;
                               NULL for the vendor's default stream; on cpu, which has none, NULL
                out     (out)  the stream; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_MEMORY | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the
                vendor's text is the reason) | GPST_ERROR_FORKED
   Ownership    destroy with gpst_stream_destroy, before the device; a wrapped native stream stays the application's and
                must live as long
   Threads      any, also several at once
   Blocking     a driver may take milliseconds
   Device       the native stream does not wait for the default stream, nor that for it (wrapped: as it was made);
                it may be one that gpst_stream_destroy has left in the device's cache
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_stream_create(gpst_device* device, gpst_stream** out);
GPST_API gpst_result gpst_stream_wrap(gpst_device* device, void* native, gpst_stream** out);

/* gpst_stream_destroy -- ends a stream

   Parameters   stream  (in)  NULL is a no-op
   Shapes       none
   Returns      none; what failed and was not told of is not told of any more
   Ownership    the stream is gone; a wrapped native stream is left as it is
   Threads      one, and no other call on the stream is running
   Blocking     until its work is done; a wrapped one is not waited for
   Device       an asynchronous device caches up to 32 streams for the next gpst_stream_create, but none whose work
                failed; gpst_context_trim and closing the device destroy them. In a forked child nothing happens
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void gpst_stream_destroy(gpst_stream* stream);

/* gpst_stream_native -- the cudaStream_t or hipStream_t, for calls of the vendor's own

   Parameters   stream  (in)  NULL gives NULL
   Shapes       none
   Returns      the native stream; NULL on cpu
   Ownership    the stream's, or the application's where it was wrapped; do not destroy
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void* gpst_stream_native(const gpst_stream* stream);

/* gpst_stream_synchronize -- the host waits for all work of a stream

   Parameters   stream  (in)  not NULL
   Shapes       none
   Returns      GPST_OK | what work that was put there since the last call has failed with | GPST_ERROR_ARGUMENT |
                GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    none
   Threads      any
   Blocking     until the work is done
   Device       none but this stream is waited for
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_stream_synchronize(gpst_stream* stream);

/* gpst_stream_wait -- what is put on the stream from now on waits for an event; the host does not

   Parameters   stream  (in)  not NULL
                event   (in)  of the same device: as it was recorded last; one that never was is waited for by nobody
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    none; the event may be recorded again at once
   Threads      any
   Blocking     never
   Device       orders two of its streams
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_stream_wait(gpst_stream* stream, gpst_event* event);

/* ---- events --------------------------------------------------------------------- */

/* gpst_event_create -- a mark in the work of a stream, with the time at which the device came to it

   Parameters   device  (in)   not NULL
                out     (out)  the event, never recorded; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_MEMORY | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST |
                GPST_ERROR_FORKED
   Ownership    destroy with gpst_event_destroy, before the device
   Threads      any, also several at once
   Blocking     never
   Device       makes an event
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_event_create(gpst_device* device, gpst_event** out);

/* gpst_event_destroy -- ends an event

   Parameters   event  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    the event is gone; streams that were told to wait for it still do
   Threads      one, and no other call on the event is running
   Blocking     none
   Device       an asynchronous device caches up to 128 events that are done, as it does streams; in a forked child
                nothing happens
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void gpst_event_destroy(gpst_event* event);

/* gpst_event_record -- puts the event on a stream: it is done when all work that is there by now is done

   Parameters   event   (in)  not NULL; recorded before: that is forgotten
                stream  (in)  of the same device
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    none
   Threads      one at a time for one event
   Blocking     never
   Device       takes its time there
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_event_record(gpst_event* event, gpst_stream* stream);

/* gpst_event_wait -- the host waits for an event

   Parameters   event       (in)  not NULL; one that was never recorded is done
                timeout_ns  (in)  0 = only asks; GPST_FOREVER
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_ARGUMENT |
                GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED. That the work before it failed is the stream's to say
   Ownership    none
   Threads      any
   Blocking     up to timeout_ns; but with GPST_FOREVER by asking again and again, up to 1 ms apart
   Device       none
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_event_wait(gpst_event* event, int64_t timeout_ns);

/* gpst_event_elapsed -- the device's time from one event to another

   Parameters   start, end  (in)   of one device, recorded and done
                elapsed_ns  (out)  negative where end was first; 0 on failure; not NULL
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_WOULD_BLOCK (not done) | GPST_ERROR_STATE (never recorded) | GPST_ERROR_ARGUMENT |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    none
   Threads      any, while neither is recorded
   Blocking     never
   Device       its clock: good to a microsecond on a GPU
   Source       core/device/stream.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_event_elapsed(gpst_event* start, gpst_event* end, int64_t* elapsed_ns);

/* ---- copies --------------------------------------------------------------------- */

/* gpst_copy -- puts a copy on a stream; gpst_copy_rows -- rows with pitch

   Which way it goes is seen from the two addresses: each is of the host (plain, page-locked or registered) or of the
   stream's device, whoever allocated it, and may point into the middle.

   Parameters   dst, src         (in)  must not overlap; NULL only where nothing is copied
                bytes            (in)  0 is a no-op
                dst_pitch_bytes  (in)  from one row to the next; at least row_bytes
                src_pitch_bytes  (in)  likewise
                row_bytes        (in)  of each row; 0 is a no-op
                n_rows           (in)  0 is a no-op
                stream           (in)  not NULL
   Shapes       dst and src: uint8_t[bytes]; uint8_t[n_rows][pitch_bytes], of which row_bytes each
   Returns      GPST_OK: it will be copied, in the order of the stream | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW (rows
                that do not fit in memory) | GPST_ERROR_MEMORY | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST |
                GPST_ERROR_FORKED. Where rows fail, some may be copied
   Ownership    dst and src stay the caller's, and as they are until the stream has been there
   Threads      any; from several at once: in any order
   Blocking     cpu: copies. A GPU: plain host memory may make the host wait; page-locked memory does not
   Device       reads and writes as told
   Source       core/device/copy.c          Tests  tests/test_device_copy.c          Since 0.1
*/
GPST_API gpst_result gpst_copy(void* dst, const void* src, size_t bytes, gpst_stream* stream);
GPST_API gpst_result gpst_copy_rows(void* dst, size_t dst_pitch_bytes, const void* src, size_t src_pitch_bytes,
                                    size_t row_bytes, size_t n_rows, gpst_stream* stream);

/* gpst_copy_peer -- from the memory of one device to that of another

   Where both are of one backend that knows a way (gpst_device_info.copies_peers), or dst's memory is the host's, it is
   put on the stream; else it goes through the host, and is done when the call returns.

   Parameters   dst         (in)  memory of dst_device
                dst_device  (in)  not NULL; the stream's own: as gpst_copy
                src         (in)  memory of the stream's device
                bytes       (in)  0 is a no-op
                stream      (in)  not NULL: of the device that has src
   Shapes       dst and src: uint8_t[bytes]
   Returns      as gpst_copy
   Ownership    as gpst_copy
   Threads      any
   Blocking     through the host: until the stream has come to it, and the bytes are there; allocates up to 4 MiB of
                page-locked memory for the time
   Device       both; what dst_device does with dst meanwhile is not waited for
   Source       core/device/copy.c          Tests  tests/test_device_copy.c          Since 0.1
*/
GPST_API gpst_result gpst_copy_peer(void* dst, gpst_device* dst_device, const void* src, size_t bytes,
                                    gpst_stream* stream);

/* gpst_fill -- sets bytes of device memory

   Parameters   dst     (in)  memory of the stream's device
                value   (in)  of each byte; the low 8 bits count
                bytes   (in)  0 is a no-op
                stream  (in)  not NULL
   Shapes       dst: uint8_t[bytes]
   Returns      as gpst_copy
   Ownership    as gpst_copy
   Threads      any
   Blocking     never, but on cpu
   Device       writes dst
   Source       core/device/copy.c          Tests  tests/test_device_copy.c          Since 0.1
*/
GPST_API gpst_result gpst_fill(void* dst, int value, size_t bytes, gpst_stream* stream);

#ifdef __cplusplus
}
#endif
#endif
