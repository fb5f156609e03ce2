# gpustage -- GNU make. `make` builds the command and the library object; `make demo` and `make test` are the two
# commands of the README; everything made goes under build/.
#
#   make                build/gpustage, build/gpustage.o, build/libgpustage.so
#   make demo           a small 360-degree sequence reprojected to 8 views a frame, under build/demo/
#   make test           every test, on the split sources and on gpustage.h
#   make test TEST_ON=  without the engine's second turn: its tests run again on the simulated device, or on the GPU
#   make test BUSY='40 25'   while somebody takes 40 % of each core, up to 25 ms at a time (asan and tsan, too; as root)
#   make GPU=cuda       the same with the GPU half, by nvcc (GPU=hip: by hipcc); under build/cuda (build/hip)
#   make asan tsan      every test under AddressSanitizer + UBSan, those with threads under ThreadSanitizer
#   make windows        build/windows/gpustage.exe, by mingw; make windows-test: and its test, under wine
#   make valgrind       the kernels' portable loops under valgrind
#   make fuzz SECONDS=60
#                       every fuzzer for so long, from random seeds, under AddressSanitizer + UBSan; SANITIZE='...' for
#                       others, TARGETS='pipeline ring' for some of them
#   make check          gpustage.h is current, every declaration documented, the header compiles everywhere
#   make peers          the kernels against those of other projects, as far as they are installed: results (peers-results
#                       alone: the conventions of the warp) and speed
#   make peers-colmap   does pycolmap, where it is installed, take --layout colmap as it lies there?
#   make bench-jobs     build/jobs/run_job, for bench/jobs.py; BASE=REV: with the gpustage.h of that revision, as
#                       build/jobs/REV/run_job
#   make bench-kernels bench-engine bench-readers bench-prefetch bench-ring bench-live bench-gpu
#                       the programs of bench/README.md, under build/bench/
#   make amalgamate     gpustage.h from core/, backends/ and kernels/
#   make install        header, pkg-config file and command under DESTDIR/PREFIX
#   make clean

# cuda, hip, hip_on_nvidia, or nothing: then there is no GPU half.
GPU ?=
BUILD ?= build$(if $(GPU),/$(GPU))
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
# Set by the targets asan and tsan for the makes that they start. In instrumented code gcc sees array bounds and
# uninitialised values that are not there.
SANITIZE ?=
# Of what is compiled once and runs for a moment: examples, and what tests compile.
UNOPTIMISED = $(filter-out -O%,$(SANITIZE))
TEST_BUILDS ?= split amalgam
TEST_SECONDS ?= 120
TEST_FLOOR ?= 1
# What tools/busy.c is told; nothing: it does not run.
BUSY ?=

MAKEFLAGS += --no-print-directory
SUBMAKE = $(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))
.SECONDARY:
.DELETE_ON_ERROR:
.PRECIOUS: gpustage.h
.PHONY: fuzz fuzz-run gpu-check-build bench-jobs bench-kernels bench-engine bench-readers bench-prefetch bench-ring bench-live bench-gpu all demo demo-run test test-run asan tsan windows windows-test valgrind check peers peers-results peers-colmap peers-run amalgamate install clean FORCE

all:

# ---- what this machine has -----------------------------------------------------------
HASH := \#
has_header = $(shell echo '$(HASH)include <$(1)>' | $(CC) $(2) -E -x c - >/dev/null 2>&1 && echo yes)

ifndef OPENMP
OPENMP := $(if $(findstring thread,$(SANITIZE)),,$(if $(call has_header,omp.h,-fopenmp),-fopenmp))
endif
# For Windows, by mingw: one program that needs nothing beside it, and whose main takes wide arguments.
WINDOWS := $(findstring mingw,$(shell $(CC) -dumpmachine 2>/dev/null))
TOOL_JPEG := $(call has_header,turbojpeg.h)
TOOL_PNG := $(call has_header,spng.h)
TOOL_TIFF := $(call has_header,tiffio.h)
TOOL_WEBP := $(call has_header,webp/encode.h)
HAVE_CMOCKA := $(call has_header,cmocka.h)
HAVE_PYTHON := $(shell command -v $(PYTHON) 2>/dev/null)

# ---- the GPU half ----------------------------------------------------------------------
# Host code stays the C compiler's; nvcc or hipcc makes one object more, which needs the vendor's runtime.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
HIPCC ?= hipcc
GPU_ARCH ?= native
GPU_FLAGS ?= -O3
GPU_XCOMPILER := -Wall,-Wextra,-fno-exceptions,-fno-threadsafe-statics,-fPIC
ifeq ($(GPU),cuda)
GPU_COMPILE = $(NVCC) -x cu -std=c++17 -arch=$(GPU_ARCH) $(GPU_FLAGS) -Werror all-warnings -Xcompiler $(GPU_XCOMPILER)
GPU_LIBS := -L$(dir $(NVCC))../lib64 -lcudart_static -lrt -ldl -lpthread
GPU_DEFINE := -DGPUSTAGE_CUDA
else ifeq ($(GPU),hip_on_nvidia)
# HIP's own headers for NVIDIA devices: proves how our HIP calls are spelt, on hardware that is at hand.
# HIP_INCLUDE: the folder with hip/, where it isn't the compiler's own; its text has warnings that are not ours.
GPU_COMPILE = $(NVCC) -x cu -std=c++17 -arch=$(GPU_ARCH) $(GPU_FLAGS) -D__HIP_PLATFORM_NVIDIA__ -DGPUSTAGE_HIP \
    $(if $(HIP_INCLUDE),-isystem $(HIP_INCLUDE)) -include tests/hip_on_nvidia.h -diag-suppress 2810,940 -Werror all-warnings -Xcompiler $(GPU_XCOMPILER)
GPU_LIBS := -L$(dir $(NVCC))../lib64 -lcudart_static -lrt -ldl -lpthread
GPU_DEFINE := -DGPUSTAGE_HIP
else ifeq ($(GPU),hip)
GPU_COMPILE = $(HIPCC) -x hip -std=c++17 $(if $(filter-out native,$(GPU_ARCH)),--offload-arch=$(GPU_ARCH)) $(GPU_FLAGS) \
    -Wall -Wextra -Werror -fno-exceptions -fno-threadsafe-statics -fPIC
GPU_LIBS := -lamdhip64
GPU_DEFINE := -DGPUSTAGE_HIP
else ifneq ($(GPU),)
$(error GPU=$(GPU): must be cuda, hip, hip_on_nvidia or nothing)
endif
GPU_OBJECT := $(if $(GPU),$(BUILD)/gpustage_gpu.o)

FLAGS = $(CPPFLAGS) $(CFLAGS) $(GPU_DEFINE) $(SANITIZE) $(OPENMP) -pthread
LINK_FLAGS = $(LDFLAGS) $(SANITIZE) $(OPENMP) $(GPU_LIBS) -pthread
TOOL_FLAGS := $(foreach kind,PNG TIFF WEBP,$(if $(TOOL_$(kind)),-DGPST_TOOL_$(kind)))
TOOL_LIBS := $(if $(TOOL_PNG),-lspng) $(if $(TOOL_TIFF),-ltiff) $(if $(TOOL_WEBP),-lwebp) -lm
DEPEND = -MMD -MP -MF $@.d -MT $@

# Everything is built again when the compiler, its flags or the libraries found change.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS) $(LDFLAGS) $(TOOL_FLAGS) $(GPU_COMPILE)' > $@.now
	@cmp -s $@.now $@ || cp $@.now $@

# ---- the header ------------------------------------------------------------------------
SPLIT_SOURCES := $(sort $(wildcard core/*/*.c backends/*.c kernels/*/*.c))
SPLIT_OBJECTS := $(SPLIT_SOURCES:%.c=$(BUILD)/split/%.o)
SPLIT_LIBRARY := $(BUILD)/split/libgpustage_split.a
HEADER_SOURCES := $(SPLIT_SOURCES) $(wildcard core/*/*.h core/preamble.txt backends/*.h kernels/*/*.h)

ifneq ($(HAVE_PYTHON),)
gpustage.h: amalgamate.py $(HEADER_SOURCES)
	@$(PYTHON) amalgamate.py
endif

amalgamate:
	$(PYTHON) amalgamate.py

# ---- the library and the command ---------------------------------------------------------
TOOL_SOURCES := $(sort $(wildcard tools/gpustage/*.c))
TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(BUILD)/%.o)
COMMAND := $(BUILD)/gpustage$(if $(WINDOWS),.exe)

all: $(COMMAND) $(BUILD)/gpustage.o $(BUILD)/libgpustage.so

$(BUILD)/gpustage.o: gpustage.c gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -c $< -o $@

$(GPU_OBJECT): gpustage_gpu.cu gpustage.h $(BUILD)/flags
	$(GPU_COMPILE) -c $< -o $@

$(BUILD)/libgpustage.so: gpustage.c $(GPU_OBJECT) gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -DGPUSTAGE_SHARED -fPIC -fvisibility=hidden -shared $< $(GPU_OBJECT) -o $@ $(LINK_FLAGS) -lm

$(BUILD)/tools/%.o: tools/%.c $(BUILD)/flags | gpustage.h
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(TOOL_FLAGS) $(DEPEND) -c $< -o $@

# Instrumented code takes long to compile: the split library is there for the tests.
$(COMMAND): $(TOOL_OBJECTS) $(GPU_OBJECT) $(if $(SANITIZE),$(SPLIT_LIBRARY),$(BUILD)/gpustage.o)
	$(CC) $^ -o $@ $(LINK_FLAGS) $(if $(WINDOWS),-static -municode) $(TOOL_LIBS)

# Developers' programs. The demo's scene writes its frames with the command's own codecs.
$(BUILD)/demo_scene: $(BUILD)/tools/demo_scene.o $(filter-out %/main.o,$(TOOL_OBJECTS)) $(BUILD)/gpustage.o $(GPU_OBJECT)
	$(CC) $^ -o $@ $(LINK_FLAGS) $(TOOL_LIBS)

$(BUILD)/busy: tools/busy.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $< -o $@ -pthread

# ---- what measures: bench/README.md ------------------------------------------------------------
BENCHES := $(patsubst bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard bench/*.c)))
GPU_BENCH_SOURCES := $(sort $(filter-out bench/gpu/live_model.cu,$(wildcard bench/gpu/*.cu)))
GPU_BENCHES := $(if $(GPU),$(GPU_BENCH_SOURCES:bench/gpu/%.cu=$(BUILD)/bench/gpu_%))

bench-kernels bench-engine bench-readers bench-prefetch bench-ring bench-live: bench-%: $(BUILD)/bench/%

bench-gpu: $(GPU_BENCHES)
	$(if $(GPU),@:,$(error bench-gpu: say GPU=cuda))

$(BUILD)/bench/%: bench/%.c bench/measure.h bench/workloads.h $(GPU_OBJECT) $(BUILD)/gpustage.o
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(filter %.c %.o,$^) -o $@ $(LINK_FLAGS) -lm

$(BUILD)/bench/live: bench/live.h bench/gpu/live_model.h $(if $(GPU),$(BUILD)/bench/live_model.o)

$(BUILD)/bench/live_model.o: bench/gpu/live_model.cu bench/gpu/live_model.h gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(GPU_COMPILE) -c $< -o $@

$(BUILD)/bench/gpu_%: bench/gpu/%.cu bench/gpu/gpu.h gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(GPU_COMPILE) -I. $< -o $@ $(GPU_LIBS)

# ---- the jobs: bench/jobs.py -----------------------------------------------------------------
# With BASE the same sources are compiled in a tree of that revision, with its gpustage.h and its codecs, and with the
# archive of libjpeg-turbo, since older ones do not look for it when they run.
BASE =
JOBS_BUILD := $(BUILD)/jobs$(if $(BASE),/$(BASE))
JOBS_TREE := $(if $(BASE),$(JOBS_BUILD)/tree/,)
JOBS_OBJECTS := $(patsubst %.c,$(JOBS_BUILD)/%.o,$(sort $(wildcard bench/jobs/*.c)) $(if $(BASE), \
    $(shell git ls-tree --name-only $(BASE) tools/gpustage/ | grep 'codec.*[.]c$$') gpustage.c,$(sort $(wildcard tools/gpustage/codec*.c))))
JOBS_GPU := $(if $(GPU),$(if $(BASE),$(JOBS_BUILD)/gpustage_gpu.o,$(GPU_OBJECT)))
JOBS_LIBRARY := $(if $(BASE),,$(if $(SANITIZE),$(SPLIT_LIBRARY),$(BUILD)/gpustage.o))
JOBS_PROGRAM := $(JOBS_BUILD)/run_job
JPEG_ARCHIVE := $(filter /%,$(shell $(CC) -print-file-name=libturbojpeg.a))
JOBS_FLAGS := $(if $(BASE),$(if $(TOOL_JPEG),-DGPST_TOOL_JPEG))

bench-jobs: $(JOBS_PROGRAM)

# Our present sources in the tree of the other revision.
ifneq ($(BASE),)
$(JOBS_BUILD)/tree/gpustage.h:
	@mkdir -p $(@D)
	git archive $(BASE) | tar x -m -C $(@D)

$(JOBS_BUILD)/copied: $(wildcard bench/jobs/*) bench/measure.h | $(JOBS_BUILD)/tree/gpustage.h
	@mkdir -p $(JOBS_BUILD)/tree/bench/jobs
	@cp bench/jobs/*.[ch] $(JOBS_BUILD)/tree/bench/jobs/
	@cp bench/measure.h $(JOBS_BUILD)/tree/bench/
	@touch $@

$(JOBS_BUILD)/gpustage.o: $(JOBS_BUILD)/tree/gpustage.h $(BUILD)/flags
	$(CC) $(FLAGS) -c $(JOBS_TREE)gpustage.c -o $@

$(JOBS_BUILD)/gpustage_gpu.o: $(JOBS_BUILD)/tree/gpustage.h $(BUILD)/flags
	$(GPU_COMPILE) -c $(JOBS_TREE)gpustage_gpu.cu -o $@
endif

$(JOBS_BUILD)/%.o: $(if $(BASE),$(JOBS_BUILD)/copied,%.c) $(BUILD)/flags | gpustage.h
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(JOBS_FLAGS) $(if $(BASE),,$(DEPEND)) -c $(JOBS_TREE)$*.c -o $@

$(JOBS_PROGRAM): $(JOBS_OBJECTS) $(JOBS_GPU) $(JOBS_LIBRARY)
	$(CC) $^ -o $@ $(LINK_FLAGS) $(if $(BASE),$(if $(TOOL_JPEG),$(or $(JPEG_ARCHIVE),-lturbojpeg))) -lm

# As users have it, header and code in one unit. Instrumented, the header takes 10 to 30 times as long as the example: the
# split library is there for the tests, and the first example has the header inside (tests/test_examples.py).
ifeq ($(SANITIZE),)
$(BUILD)/examples/%: examples/%.c $(GPU_OBJECT) gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=c11 $(GPU_DEFINE) -I. $< $(GPU_OBJECT) -o $@ $(LDFLAGS) $(GPU_LIBS) -pthread -lm
else
$(BUILD)/examples/%: examples/%.c $(GPU_OBJECT) $(SPLIT_LIBRARY) gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	sed 's/^#define GPUSTAGE_IMPLEMENTATION$$//' $< | $(CC) $(CPPFLAGS) -std=gnu11 -g $(GPU_DEFINE) $(UNOPTIMISED) -I. \
	    -x c - -x none $(GPU_OBJECT) $(SPLIT_LIBRARY) -o $@ $(LINK_FLAGS) -lm
endif

$(BUILD)/examples/%: examples/%.cu gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(GPU_COMPILE) -I. $< -o $@ $(GPU_LIBS)

# ---- tests ---------------------------------------------------------------------------------
TEST_SOURCES := $(sort $(filter-out $(if $(GPU),,tests/test_backend_gpu.c tests/test_pipeline_gpu.c tests/test_batch_gpu.c),$(wildcard tests/test_*.c)))
# One unit each, by nvcc or hipcc: the GPU tests that need no cmocka.
TEST_GPU_NAMES := $(if $(GPU),$(patsubst tests/%.cu,%,$(sort $(wildcard tests/test_*.cu))))
TEST_GPU_OBJECT := $(if $(GPU),$(BUILD)/tests/gpu_kernels.o)
# test_run.py starts nothing that is instrumented.
TEST_SCRIPTS := $(sort $(filter-out $(if $(SANITIZE),tests/test_run.py),$(wildcard tests/test_*.sh tests/test_*.py)))
TEST_NAMES := $(TEST_SOURCES:tests/%.c=%)
TEST_PROGRAMS := $(foreach build,$(TEST_BUILDS),$(TEST_NAMES:%=$(BUILD)/tests/$(build)/%))
TEST_ONE_UNIT := test_pipeline test_warp_bits
# Tests compare with the library itself.
TEST_FLAGS := $(TOOL_FLAGS) $(if $(TOOL_JPEG),-DGPST_TOOL_JPEG)
TEST_LIBS := -lcmocka $(if $(TOOL_JPEG),-lturbojpeg) $(TOOL_LIBS)
# The engine's tests once more, on another backend than they name: GPUSTAGE_TEST_BACKEND, in tests/pipeline_backend.h.
TEST_ON ?= $(if $(SANITIZE),,$(or $(patsubst hip%,hip,$(GPU)),sim:mapped=1))
TEST_ON_SOURCES := $(shell grep -l '"pipeline_kit.h"' $$(grep -L KIT_NAMES_ITS_BACKENDS $(TEST_SOURCES)))
TEST_ON_PROGRAMS := $(if $(HAVE_CMOCKA),$(TEST_ON_SOURCES:tests/%.c=$(BUILD)/tests/$(firstword $(TEST_BUILDS))/%))
# The first one is built by its own test, as its comment says.
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(sort $(filter-out examples/01_%,$(wildcard examples/*.c))))

$(BUILD)/split/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -DGPUSTAGE_SPLIT_BUILD $(DEPEND) -c $< -o $@

$(SPLIT_LIBRARY): $(SPLIT_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

# A test's code is compiled once and linked twice: with the split library, and with gpustage.h in one unit, whose
# inside is not static then.
$(BUILD)/tests/object/%.o: tests/%.c $(BUILD)/flags | gpustage.h
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(TEST_FLAGS) -DGPUSTAGE_SPLIT_BUILD $(DEPEND) -c $< -o $@

# Libraries that stand in for others at run time: by a test's variable they are found as those are.
TEST_FAKES := $(addprefix $(BUILD)/tests/fake/,turbojpeg.so lacks_compress.so)
$(BUILD)/tests/fake/lacks_compress.so: FAKE_FLAGS = -DFAKE_LACKS_COMPRESS
$(TEST_FAKES): tests/fake/turbojpeg.c tests/fake/turbojpeg.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) $(FAKE_FLAGS) -fPIC -shared $< -o $@

$(BUILD)/tests/object/test_jpeg_fake.o: private CPPFLAGS += -DGPST_TEST_FAKES='"$(abspath $(BUILD)/tests/fake)"'
$(BUILD)/tests/object/test_jpeg_fake.o: | $(TEST_FAKES)

# nvJPEG's is made of libturbojpeg; the second one lacks functions. Private: else everything is built with these flags.
NVJPEG_FAKES := $(if $(TOOL_JPEG),$(addprefix $(BUILD)/tests/fake/,nvjpeg.so nvjpeg_old.so))
NVJPEG_TESTS := $(patsubst %,$(BUILD)/tests/object/test_%.o,pipeline_codec pipeline_placement nvjpeg nvjpeg_faults tier)
$(BUILD)/tests/fake/nvjpeg_old.so: private CPPFLAGS += -DFAKE_NVJPEG_OLD
$(NVJPEG_FAKES): tests/fake/nvjpeg.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -fPIC -fvisibility=hidden -shared $< -o $@ $(LINK_FLAGS) -lturbojpeg

$(NVJPEG_TESTS): private CPPFLAGS += -DGPST_TEST_FAKES='"$(abspath $(BUILD)/tests/fake)"'
$(NVJPEG_TESTS): | $(NVJPEG_FAKES)

$(BUILD)/tests/gpustage.o: gpustage.c gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -DGPUSTAGE_SPLIT_BUILD -c $< -o $@

TEST_GPU_OBJECTS := $(GPU_OBJECT) $(TEST_GPU_OBJECT)
$(BUILD)/tests/split/%: $(BUILD)/tests/object/%.o $(TEST_GPU_OBJECTS) $(SPLIT_LIBRARY)
	@mkdir -p $(@D)
	$(CC) $^ -o $@ $(LINK_FLAGS) $(TEST_LIBS)

$(BUILD)/tests/amalgam/%: $(BUILD)/tests/object/%.o $(TEST_GPU_OBJECTS) $(BUILD)/tests/gpustage.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ $(LINK_FLAGS) $(TEST_LIBS)

# As users have it, code and header in one unit: two that reach every part of the library between them. Any other test
# can be built so: make test TEST_ONE_UNIT=test_ring.
$(TEST_ONE_UNIT:%=$(BUILD)/tests/amalgam/%): $(BUILD)/tests/amalgam/%: tests/%.c $(TEST_GPU_OBJECTS) gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(TEST_FLAGS) -DGPST_TEST_AMALGAM $(DEPEND) $< $(TEST_GPU_OBJECTS) -o $@ $(LINK_FLAGS) $(TEST_LIBS)

$(BUILD)/tests/gpu/%: tests/%.cu $(wildcard tests/test_gpu*.h) gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(GPU_COMPILE) -Xcompiler -Wno-format-zero-length -I. $< -o $@ $(GPU_LIBS)

$(BUILD)/tests/gpu_kernels.o: tests/gpu_kernels.cu gpustage.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(GPU_COMPILE) -I. -c $< -o $@

-include $(SPLIT_OBJECTS:=.d) $(TOOL_OBJECTS:=.d) $(if $(BASE),,$(JOBS_OBJECTS:=.d)) $(BUILD)/tools/demo_scene.o.d \
    $(TEST_NAMES:%=$(BUILD)/tests/object/%.o.d) $(TEST_ONE_UNIT:%=$(BUILD)/tests/amalgam/%.d)

# ---- fuzzers: tests/fuzz/ --------------------------------------------------------------------
# Those that take bytes have the main of run_corpus.c, the others their own by seeds.h. tests/test_fuzz_*.sh run them.
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_PROGRAMS := $(FUZZ_NAMES:%=$(BUILD)/fuzz/%)
TARGETS ?= $(FUZZ_NAMES)
SECONDS ?= 60

$(BUILD)/fuzz/object/%.o: tests/fuzz/%.c $(BUILD)/flags | gpustage.h
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(TOOL_FLAGS) $(DEPEND) -c $< -o $@

$(FUZZ_PROGRAMS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/object/fuzz_%.o $(GPU_OBJECT) $(SPLIT_LIBRARY)
	$(CC) $(filter %.o,$^) $(SPLIT_LIBRARY) -o $@ $(LINK_FLAGS) $(TOOL_LIBS)

$(filter-out %/pipeline %/ring,$(FUZZ_PROGRAMS)): $(BUILD)/fuzz/object/run_corpus.o
$(BUILD)/fuzz/codec: $(filter %codec.o,$(TOOL_OBJECTS)) $(filter $(BUILD)/tools/gpustage/codec_%,$(TOOL_OBJECTS))

-include $(FUZZ_NAMES:%=$(BUILD)/fuzz/object/fuzz_%.o.d) $(BUILD)/fuzz/object/run_corpus.o.d

fuzz:
	+@$(SUBMAKE) fuzz-run BUILD=$(BUILD)/asan \
	    SANITIZE='$(or $(SANITIZE),-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer $(QUIET))'

fuzz-run: $(TARGETS:%=$(BUILD)/fuzz/%)
	@failed=; for name in $(TARGETS); do \
	    GPST_BUILD=$(abspath $(BUILD)) sh tests/test_fuzz_$$name.sh --seconds $(SECONDS) || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# Without cmocka the test programs cannot be built: they are counted as skipped. Scripts take longest and go first.
TEST_GPU_PROGRAMS := $(TEST_GPU_NAMES:%=$(BUILD)/tests/gpu/%)
RUNNABLE = $(TEST_SCRIPTS) $(if $(HAVE_CMOCKA),$(TEST_PROGRAMS)) $(TEST_GPU_PROGRAMS)
SKIPPED = $(if $(HAVE_CMOCKA),,$(TEST_PROGRAMS:%=--skip %='no cmocka: install libcmocka-dev'))

# What tools/gpu_check.sh runs: programs that end with 77 where no device answers.
CHECK_TESTS := $(if $(HAVE_CMOCKA),$(addprefix $(BUILD)/tests/split/,test_backend_gpu test_pipeline_gpu test_batch_gpu \
    test_device test_device_copy test_device_enqueue test_graph test_graph_cache test_graph_cache_faults \
    test_ring_streams test_ring_stream_faults)) $(TEST_ON_PROGRAMS) $(TEST_GPU_PROGRAMS)
gpu-check-build: $(COMMAND) $(CHECK_TESTS) $(GPU_BENCHES) $(BUILD)/bench/live \
    $(addprefix $(BUILD)/examples/,06_own_kernel 08_live 10_streams_and_graphs 11_device_ring)

test:
	@sh tools/setup.sh test
	+@$(SUBMAKE) test-run

test-run: $(if $(HAVE_CMOCKA),$(TEST_PROGRAMS)) $(TEST_GPU_PROGRAMS) $(EXAMPLES) $(COMMAND) $(FUZZ_PROGRAMS) $(JOBS_PROGRAM) $(if $(SANITIZE),,$(BENCHES)) \
    $(SPLIT_LIBRARY) $(if $(SANITIZE),,$(BUILD)/libgpustage.so) $(if $(BUSY),$(BUILD)/busy)
ifneq ($(HAVE_PYTHON),)
	@GPST_BUILD=$(abspath $(BUILD)) GPST_SANITIZE='$(UNOPTIMISED)' CC='$(CC)' \
	    GPST_LIBRARY='$(abspath $(GPU_OBJECT) $(SPLIT_LIBRARY)) $(LINK_FLAGS)' \
	    $(PYTHON) tests/run.py --seconds $(TEST_SECONDS) --jobs $(JOBS) --floor $(TEST_FLOOR) $(SKIPPED) $(RUNNABLE) \
	    $(if $(BUSY),--beside '$(BUILD)/busy $(BUSY)') $(if $(TEST_ON),--on $(TEST_ON) $(TEST_ON_PROGRAMS))
else
	@echo 'no $(PYTHON): nothing can run the tests; install python3'
	@echo '0 passed, 1 failed, $(words $(TEST_PROGRAMS) $(TEST_SCRIPTS)) skipped'
	@false
endif

QUIET := -Wno-array-bounds -Wno-maybe-uninitialized

# -O1: instrumented code takes a third less time to compile than with -O2.
asan:
	+@ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(SUBMAKE) test-run BUILD=$(BUILD)/asan TEST_BUILDS=split TEST_SECONDS=480 \
	    SANITIZE='-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer $(QUIET)'

# What one thread does has no races: of kernels, and of these, none of which starts another. They are asan's.
ONE_THREAD := test_warp% test_mask test_mask_window test_quantise test_scene $(addprefix test_fuzz_,codec jpeg metadata warp) \
    $(addprefix test_,codec codec_choice codec_limits codec_tags codec_tiff exact image metadata metadata_files \
    metadata_make metadata_xmp orient pictures prefetch_policy timing tool tuner verdict window)
tsan:
	+@TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
	    $(SUBMAKE) test-run BUILD=$(BUILD)/tsan TEST_BUILDS=split TEST_SECONDS=960 \
	    TEST_NAMES='$(filter-out $(ONE_THREAD),$(TEST_NAMES))' \
	    TEST_SCRIPTS='$(filter-out $(ONE_THREAD:%=tests/%.sh) tests/test_run.py,$(TEST_SCRIPTS))' \
	    SANITIZE='-O1 -fsanitize=thread -fno-omit-frame-pointer $(QUIET)'

# Leaks that are only possible are libgomp's. The tests that take longest go first.
VALGRIND := valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite
KERNEL_TESTS := mask warp_bits mask_window mask_time warp_maps quantise warp_area warp_yuv warp
KERNEL_PROGRAMS := $(KERNEL_TESTS:%=$(BUILD)/tests/split/test_%)
valgrind:
	+@$(SUBMAKE) $(KERNEL_PROGRAMS)
	@GPUSTAGE_CPU=portable $(PYTHON) tests/run.py --seconds 960 --jobs $(JOBS) --under '$(VALGRIND)' $(KERNEL_PROGRAMS)

# The command for Windows, and the same runs of it under wine and of the one that is built here.
MINGW ?= x86_64-w64-mingw32-gcc
HAVE_MINGW := $(shell command -v $(MINGW) 2>/dev/null)
windows:
	+@$(SUBMAKE) $(BUILD)/windows/gpustage.exe BUILD=$(BUILD)/windows CC=$(MINGW)

windows-test: $(COMMAND) $(if $(HAVE_MINGW),windows)
	@GPST_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/run.py --seconds $(TEST_SECONDS) tests/windows.py

check:
	$(PYTHON) amalgamate.py --check
	$(PYTHON) tools/check_docs.py
	$(PYTHON) tools/check_house.py
	$(PYTHON) tests/compile/matrix.py --jobs $(JOBS)

# ---- other projects' kernels: tools/peers/ -----------------------------------------------------
OPENCV ?= /usr/include/opencv4
PEERS = $(if $(wildcard $(OPENCV)/opencv2/dnn.hpp),$(BUILD)/peers/opencv)

$(BUILD)/peers/opencv: tools/peers/opencv.cpp tools/peers/peer.h bench/workloads.h bench/measure.h $(BUILD)/gpustage.o
	@mkdir -p $(@D)
	$(CXX) -O2 -std=c++17 -Wall -Wextra $(OPENMP) -pthread -isystem $(OPENCV) $< $(BUILD)/gpustage.o -o $@ \
	    $(LINK_FLAGS) -lopencv_dnn -lopencv_imgproc -lopencv_core -lm

peers:
	@sh tools/setup.sh peers
	+@$(SUBMAKE) peers-results
	+@$(SUBMAKE) peers-run

peers-results: $(BUILD)/tests/split/test_warp_peers
	@rm -rf $(BUILD)/golden
	@$(PYTHON) tests/golden/make_goldens.py --out $(BUILD)/golden
	@GPST_GOLDEN=$(BUILD)/golden $<

# By hand: pycolmap is no package of Debian's.
peers-colmap: $(COMMAND)
	@$(PYTHON) tools/peers/colmap.py --build $(BUILD)

peers-run: $(PEERS) $(BUILD)/libgpustage.so
	@$(PYTHON) tools/peers/run.py --build $(BUILD)

# ---- demo ------------------------------------------------------------------------------------
DEMO_FRAMES ?= 24
DEMO_VIEWS ?= 8

demo:
	@sh tools/setup.sh demo
	+@$(SUBMAKE) demo-run

demo-run: $(COMMAND) $(BUILD)/demo_scene
	@rm -rf $(BUILD)/demo
	@mkdir -p $(BUILD)/demo/in
	@echo 'rendering $(DEMO_FRAMES) frames of a 360-degree scene into $(BUILD)/demo/in'
	@$(BUILD)/demo_scene $(BUILD)/demo/in $(DEMO_FRAMES)
	@$(COMMAND) reproject $(BUILD)/demo/in -o $(BUILD)/demo --views $(DEMO_VIEWS)
	@test -n '$(and $(TOOL_PNG),$(TOOL_TIFF),$(TOOL_WEBP))' || \
	    echo 'for PNG, TIFF and WebP, too:  sh tools/setup.sh command && make build/gpustage'
	@echo 'the views of each frame are $(BUILD)/demo/*_v00.* ... *_v0$(shell expr $(DEMO_VIEWS) - 1).*'

# ---- install -----------------------------------------------------------------------------------
VERSION := $(shell sed -n 's/^.define GPST_VERSION_TEXT "\(.*\)"/\1/p' core/base/config.h)

install: $(COMMAND)
	mkdir -p $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/bin
	cp gpustage.h $(DESTDIR)$(PREFIX)/include/gpustage.h
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' gpustage.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/gpustage.pc
	cp $(COMMAND) $(DESTDIR)$(PREFIX)/bin/gpustage

clean:
	rm -rf $(BUILD)
