/* backends/gpu.cu.h -- the table of the backend cuda or hip, whichever compiles
   it. The code is in gpu_device.cu.h, gpu_stream.cu.h and gpu_graph.cu.h. */
#include "gpu_internal.h"

#if defined(GPSTI_GPU_UNIT)

static const gpsti_backend_i gpsti_gpu_backend = {sizeof(gpsti_backend_i),
                                                  GPSTI_BACKEND_ABI,
                                                  GPSTI_SOURCE_ID,
                                                  GPSTI_RT_NAME,
                                                  gpsti_gpu_device_probe,
                                                  gpsti_gpu_device_open,
                                                  gpsti_gpu_device_close,
                                                  gpsti_gpu_device_query,
                                                  gpsti_gpu_memory_info,
                                                  gpsti_gpu_memory_alloc,
                                                  gpsti_gpu_memory_free,
                                                  gpsti_gpu_host_alloc,
                                                  gpsti_gpu_host_free,
                                                  gpsti_gpu_host_register,
                                                  gpsti_gpu_host_unregister,
                                                  gpsti_gpu_memory_check,
                                                  gpsti_gpu_stream_create,
                                                  gpsti_gpu_stream_destroy,
                                                  gpsti_gpu_stream_wait_idle,
                                                  gpsti_gpu_stream_query,
                                                  gpsti_gpu_stream_notify,
                                                  gpsti_gpu_stream_native,
                                                  gpsti_gpu_stream_wrap,
                                                  gpsti_gpu_event_create,
                                                  gpsti_gpu_event_destroy,
                                                  gpsti_gpu_event_record,
                                                  gpsti_gpu_event_query,
                                                  gpsti_gpu_event_wait,
                                                  gpsti_gpu_event_time,
                                                  gpsti_gpu_stream_wait_event,
                                                  gpsti_gpu_copy,
                                                  gpsti_gpu_copy_rows,
                                                  gpsti_gpu_memory_set,
                                                  gpsti_gpu_launch_kernel,
                                                  gpsti_gpu_graph_begin,
                                                  gpsti_gpu_graph_end,
                                                  gpsti_gpu_graph_launch,
                                                  gpsti_gpu_graph_destroy,
                                                  gpsti_gpu_copy_peer,
                                                  gpsti_gpu_ipc_export,
                                                  gpsti_gpu_ipc_import,
                                                  gpsti_gpu_ipc_close,
                                                  gpsti_gpu_last_error,
                                                  NULL};

GPSTI_LINK const gpsti_backend_i* gpsti_backend_gpu(void) { return &gpsti_gpu_backend; }

#endif
