/* tools/gpustage/probe.c -- prints what gpst_probe finds, as text or as JSON. Looks at nothing itself. */
#include "commands.h"

#include "console.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

static const codec_kind probe_codecs[] = {CODEC_JPEG, CODEC_PNG, CODEC_TIFF, CODEC_WEBP, CODEC_PNM, CODEC_NPY};
#define PROBE_N_CODECS (sizeof probe_codecs / sizeof probe_codecs[0])

/* ---- text -------------------------------------------------------------------------- */

static void probe_print_bytes(const char* name, uint64_t bytes, const char* more) {
    if (bytes >= (uint64_t)1 << 30)
        printf("%-14s%.1f GiB%s\n", name, (double)bytes / (double)((uint64_t)1 << 30), more);
    else
        printf("%-14s%.1f MiB%s\n", name, (double)bytes / 1048576.0, more);
}

static void probe_print_machine(const gpst_probe_info* info) {
    printf("%-14s%s\n", "system", info->system);
    printf("%-14s%u allowed (%u online, %u by affinity", "cores", info->cores_allowed, info->cores_online,
           info->cores_affinity);
    if (info->cores_quota > 0.0)
        printf(", quota %.2f", info->cores_quota);
    printf(")%s%s%s\n", info->has_fma ? ", fma" : "", info->has_avx2 ? ", avx2" : "",
           info->has_avx512 ? ", avx512" : "");
    probe_print_bytes("memory", info->ram_bytes, "");
    probe_print_bytes("  available", info->ram_available_bytes, "");
    if (info->memlock_bytes == UINT64_MAX)
        printf("%-14sunlimited\n", "  lockable");
    else
        probe_print_bytes("  lockable", info->memlock_bytes, "");
    printf("%-14s%u bytes; transparent huge pages %s; %llu of %llu huge pages of %llu KiB free\n", "  pages",
           info->page_bytes, info->thp[0] ? info->thp : "unknown", (unsigned long long)info->huge_pages_free,
           (unsigned long long)info->huge_pages_total, (unsigned long long)(info->huge_page_bytes / 1024));
    printf("%-14s%s%s%s\n", "io_uring", info->io_uring ? "allowed" : "no", info->io_uring ? "" : ": ",
           info->io_uring ? "" : info->io_uring_reason);
}

static void probe_print_backends(const gpst_probe_info* info) {
    for (uint32_t i = 0; i < info->n_backends; i++) {
        const gpst_probe_backend* const backend = &info->backends[i];
        printf("%s%-11s", i ? "  " : "backends\n  ", backend->name);
        if (backend->available)
            printf(" available: %s\n", backend->device_name);
        else
            printf(" %s\n", backend->compiled_in && !backend->reason[0] ? "not available" : backend->reason);
    }
}

static void probe_print_libraries(const gpst_probe_info* info) {
    for (uint32_t i = 0; i < info->n_libraries; i++) {
        const gpst_probe_library* const library = &info->libraries[i];
        if (library->available)
            printf("%s%-13s available: %s %s\n", i ? "  " : "libraries\n  ", library->name, library->name,
                   library->version);
        else
            printf("%s%-13s %s\n", i ? "  " : "libraries\n  ", library->name, library->reason);
    }
}

static void probe_print_storage(const gpst_probe_storage* storage) {
    if (!storage->path[0])
        return;
    printf("%-14s%s\n", "storage", storage->path);
    if (GPST_FAILED(storage->result)) {
        printf("  %s\n", storage->reason);
        return;
    }
    printf("%-14s%s%s\n", "  type", storage->filesystem[0] ? storage->filesystem : "unknown",
           storage->rotational == 1   ? ", rotational"
           : storage->rotational == 0 ? ", not rotational"
                                      : "");
    probe_print_bytes("  free", storage->free_bytes, "");
    if (storage->direct_offset_align_bytes > 0)
        printf("%-14soffsets of %u bytes, memory of %u\n", "  direct", storage->direct_offset_align_bytes,
               storage->direct_memory_align_bytes);
    else
        printf("%-14sno: %s\n", "  direct", storage->direct_reason);
}

static void probe_print(const gpst_probe_info* info) {
    printf("%-14s%s (%s)\n", "gpustage", GPST_VERSION_TEXT, gpst_build_info());
    printf("%-14s%s%s%s\n", "tier", gpst_tier_name(info->tier), info->tier_reason[0] ? ": " : "",
           info->tier_reason);
    probe_print_machine(info);
    probe_print_backends(info);
    probe_print_libraries(info);
    printf("%-14s", "formats");
    for (size_t i = 0; i < PROBE_N_CODECS; i++)
        printf("%s%s%s", i ? ", " : "", codec_extension(probe_codecs[i]),
               codec_available(probe_codecs[i])  ? ""
               : probe_codecs[i] == CODEC_JPEG ? " (no libturbojpeg)"
                                               : " (not built in)");
    printf("\n");
    probe_print_storage(&info->storage);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void probe_json_machine(json* out, const gpst_probe_info* info) {
    json_string(out, "system", info->system);
    json_open(out, "cores", '{');
    json_count(out, "online", info->cores_online);
    json_count(out, "affinity", info->cores_affinity);
    json_number(out, "quota", info->cores_quota);
    json_count(out, "allowed", info->cores_allowed);
    json_bool(out, "fma", info->has_fma);
    json_bool(out, "avx2", info->has_avx2);
    json_bool(out, "avx512", info->has_avx512);
    json_close(out, '}');
    json_open(out, "memory", '{');
    json_count(out, "bytes", info->ram_bytes);
    json_count(out, "available_bytes", info->ram_available_bytes);
    if (info->memlock_bytes == UINT64_MAX)
        json_string(out, "memlock_bytes", "unlimited");
    else
        json_count(out, "memlock_bytes", info->memlock_bytes);
    json_count(out, "page_bytes", info->page_bytes);
    json_string(out, "transparent_huge_pages", info->thp);
    json_count(out, "huge_page_bytes", info->huge_page_bytes);
    json_count(out, "huge_pages_total", info->huge_pages_total);
    json_count(out, "huge_pages_free", info->huge_pages_free);
    json_close(out, '}');
    json_open(out, "io_uring", '{');
    json_bool(out, "allowed", info->io_uring);
    json_string(out, "reason", info->io_uring_reason);
    json_close(out, '}');
}

static void probe_json_backends(json* out, const gpst_probe_info* info) {
    json_open(out, "backends", '[');
    for (uint32_t i = 0; i < info->n_backends; i++) {
        const gpst_probe_backend* const backend = &info->backends[i];
        json_open(out, NULL, '{');
        json_string(out, "name", backend->name);
        json_bool(out, "compiled_in", backend->compiled_in);
        json_bool(out, "available", backend->available);
        json_string(out, "device", backend->device_name);
        json_count(out, "memory_bytes", backend->memory_bytes);
        json_string(out, "reason", backend->reason);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_open(out, "formats", '{');
    for (size_t i = 0; i < PROBE_N_CODECS; i++)
        json_bool(out, codec_extension(probe_codecs[i]), codec_available(probe_codecs[i]));
    json_close(out, '}');
}

static void probe_json_libraries(json* out, const gpst_probe_info* info) {
    json_open(out, "libraries", '[');
    for (uint32_t i = 0; i < info->n_libraries; i++) {
        const gpst_probe_library* const library = &info->libraries[i];
        json_open(out, NULL, '{');
        json_string(out, "name", library->name);
        json_bool(out, "available", library->available);
        json_string(out, "version", library->version);
        json_string(out, "reason", library->reason);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void probe_json_storage(json* out, const gpst_probe_storage* storage) {
    if (!storage->path[0])
        return;
    json_open(out, "storage", '{');
    json_string(out, "path", storage->path);
    json_string(out, "result", gpst_result_name(storage->result));
    json_string(out, "reason", storage->reason);
    json_string(out, "filesystem", storage->filesystem);
    json_number(out, "rotational", (double)storage->rotational);
    json_count(out, "free_bytes", storage->free_bytes);
    json_count(out, "total_bytes", storage->total_bytes);
    json_count(out, "direct_offset_align_bytes", storage->direct_offset_align_bytes);
    json_count(out, "direct_memory_align_bytes", storage->direct_memory_align_bytes);
    json_string(out, "direct_reason", storage->direct_reason);
    json_close(out, '}');
}

static int probe_print_json(const gpst_probe_info* info) {
    json out = GPST_ZERO;
    json_open(&out, NULL, '{');
    json_string(&out, "version", GPST_VERSION_TEXT);
    json_string(&out, "build", gpst_build_info());
    json_string(&out, "tier", gpst_tier_name(info->tier));
    json_string(&out, "tier_reason", info->tier_reason);
    probe_json_machine(&out, info);
    probe_json_backends(&out, info);
    probe_json_libraries(&out, info);
    probe_json_storage(&out, &info->storage);
    json_number(&out, "duration_s", (double)info->duration_ns / 1e9);
    json_close(&out, '}');
    const int status = out.out.failed ? console_memory() : EXIT_DONE;
    if (!out.out.failed)
        fputs(out.out.data, stdout);
    text_free(&out.out);
    return status;
}

int command_probe(const options* asked) {
    static gpst_probe_info info;
    const gpst_result result = gpst_probe(asked->inputs.count ? asked->inputs.items[0] : NULL, &info);
    int status = EXIT_DONE;
    if (GPST_FAILED(result)) {
        console_error("%s", gpst_last_reason());
        return EXIT_FAILED_ITEMS;
    }
    if (asked->json)
        status = probe_print_json(&info);
    else
        probe_print(&info);
    if (info.storage.path[0] && GPST_FAILED(info.storage.result)) {
        console_error("%s: %s", info.storage.path, info.storage.reason);
        status = EXIT_FAILED_ITEMS;
    }
    return status;
}
