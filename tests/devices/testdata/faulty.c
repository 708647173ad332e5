/*
 * A compute module for tests: devices that compute expert matmuls through the processor's module, in buffers of their own,
 * and one fault.
 *
 *   BMOE_TEST_FAULT  environment: the fault, or what is unlike the device without one; see the table of the test
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"

#ifndef NAME
#define NAME "FAULTY"
#endif
#define MIB ((size_t) 1 << 20)

static bool fault(const char * name) {
    const char * is = getenv("BMOE_TEST_FAULT");
    return is != NULL && strcmp(is, name) == 0;
}

static void die(void) { *(volatile int *) (uintptr_t) 8 = 1; }
static void hang(void) { for (;;) sleep(60); }

static struct ggml_backend_device      devices[2];
static struct ggml_backend_buffer_type own, repacked;

/* Buffers: the processor's memory under another name, so that no other backend takes them for its own. */

static const char * buffer_name(ggml_backend_buffer_type_t t) { return t == &own ? NAME : NAME "_REPACK"; }
static size_t buffer_alignment(ggml_backend_buffer_type_t t) { (void) t; return 64; }

static void buffer_free(ggml_backend_buffer_t b) { free(b->context); }
static void * buffer_base(ggml_backend_buffer_t b) { return (void *) (((uintptr_t) b->context + 63) & ~(uintptr_t) 63); }
static void buffer_set(ggml_backend_buffer_t b, struct ggml_tensor * t, const void * from, size_t at, size_t n) {
    (void) b;
    memcpy((char *) t->data + at, from, n);
}
static void buffer_get(ggml_backend_buffer_t b, const struct ggml_tensor * t, void * to, size_t at, size_t n) {
    (void) b;
    memcpy(to, (const char *) t->data + at, n);
}
static void buffer_clear(ggml_backend_buffer_t b, uint8_t value) {
    /* Memory that nobody touches is not there: so a device looks whose memory is its own. */
    if (fault("shares-host")) {
        memset(buffer_base(b), value, b->size);
    }
}

static const struct ggml_backend_buffer_i buffer_calls = {
    .free_buffer = buffer_free, .get_base = buffer_base, .set_tensor = buffer_set, .get_tensor = buffer_get, .clear = buffer_clear,
};

static ggml_backend_buffer_t buffer_alloc(ggml_backend_buffer_type_t t, size_t n) {
    if (fault("dies-allocating") && n > 0) {
        die();
    }
    if (fault("allocates-nothing") && n > 0) {
        return NULL;
    }
    void * memory = malloc(n + 64);
    return memory == NULL ? NULL : ggml_backend_buffer_init(t, buffer_calls, memory, n);
}

static ggml_backend_buffer_t wrap(ggml_backend_dev_t d, void * memory, size_t n, size_t most) {
    (void) d;
    (void) most;
    if (fault("wraps-nothing")) {
        return NULL;
    }
    if (fault("wraps-another")) {
        return ggml_backend_buffer_init(&own, buffer_calls, calloc(1, n + 64), n);
    }
    return ggml_backend_cpu_buffer_from_ptr(memory, n);
}

/* Computing. */

static const char * backend_name(ggml_backend_t b) { (void) b; return NAME; }
static void backend_free(ggml_backend_t b) {
    ggml_backend_free(b->context);
    free(b);
}
static enum ggml_status backend_compute(ggml_backend_t b, struct ggml_cgraph * g) {
    if (fault("dies-computing")) {
        die();
    }
    if (fault("aborts-computing")) {
        GGML_ABORT("the driver lost its device");
    }
    if (fault("hangs-computing")) {
        hang();
    }
    if (fault("computes-nothing")) {
        return GGML_STATUS_FAILED;
    }
    enum ggml_status status = ggml_backend_graph_compute(b->context, g);
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        struct ggml_tensor * t = ggml_graph_node(g, i);
        if (fault(t->ne[2] == 1 ? "wrong-narrow" : "wrong-wide")) {
            for (int64_t k = 0; k < ggml_nelements(t); k++) {
                ((float *) t->data)[k] *= 1.5f;
            }
        }
        if (fault("no-number")) {
            memset(t->data, 0xff, ggml_nbytes(t));
        }
    }
    return status;
}

/* Devices. */

static const char * device_name(ggml_backend_dev_t d) { return d == &devices[0] ? NAME "0" : NAME "1"; }
static const char * device_about(ggml_backend_dev_t d) { (void) d; return "a device\x1b[31m of a test"; }
static void device_memory(ggml_backend_dev_t d, size_t * unused, size_t * total) {
    (void) d;
    *total = fault("no-size") ? 0 : 8192 * MIB;
    *unused = fault("no-size") ? 0 : fault("little-free") ? 64 * MIB : 6144 * MIB;
}
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t d) {
    (void) d;
    return fault("integrated") ? GGML_BACKEND_DEVICE_TYPE_IGPU : GGML_BACKEND_DEVICE_TYPE_GPU;
}
static void device_props(ggml_backend_dev_t d, struct ggml_backend_dev_props * p) {
    p->name = device_name(d);
    p->description = device_about(d);
    p->type = device_type(d);
    device_memory(d, &p->memory_free, &p->memory_total);
    p->caps.buffer_from_host_ptr = fault("wraps") || fault("wraps-nothing") || fault("wraps-another");
}
static ggml_backend_t device_init(ggml_backend_dev_t d, const char * params) {
    (void) params;
    if (fault("dies-starting")) {
        die();
    }
    if (fault("says-garbage")) {
        printf("Segmentation fau");
        fflush(stdout);
        _exit(0);
    }
    if (fault("answers-for-another")) {
        printf("\n{\"name\":\"GPU7\",\"usable\":{\"value\":true}}\n");
        fflush(stdout);
        _exit(0);
    }
    if (fault("lies")) {
        printf("\n{\"name\":\"" NAME "0\",\"usable\":{\"value\":true},\"read_rate\":{\"value\":-1}}\n");
        fflush(stdout);
        _exit(0);
    }
    if (fault("chatters")) {
        printf("Found 1 device:\n{\"name\":\"GPU7\"} and more");
        fflush(stdout);
    }
    ggml_backend_t b = calloc(1, sizeof *b);
    b->iface.get_name = backend_name;
    b->iface.free = backend_free;
    b->iface.graph_compute = backend_compute;
    b->device = d;
    b->context = ggml_backend_dev_init(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), NULL);
    return b;
}
static ggml_backend_buffer_type_t device_buffer(ggml_backend_dev_t d) { (void) d; return &own; }
static bool device_computes(ggml_backend_dev_t d, const struct ggml_tensor * t) {
    (void) d;
    if (fault("no-experts") || (fault("no-wide") && t->ne[2] > 1)) {
        return false;
    }
    const struct ggml_tensor * weights = t->src[0];
    if (fault("repacks") && weights != NULL && (weights->buffer == NULL || weights->buffer->buft != &repacked)) {
        return false;
    }
    return t->op == GGML_OP_MUL_MAT_ID;
}
static bool device_takes(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) { (void) d; return t == &own || t == &repacked; }

static ggml_backend_buffer_type_t * extra(ggml_backend_dev_t d) {
    (void) d;
    static ggml_backend_buffer_type_t list[2] = {&repacked, NULL};
    return list;
}

static const char * reg_name(ggml_backend_reg_t r) { (void) r; return NAME; }
static size_t reg_count(ggml_backend_reg_t r) {
    (void) r;
    if (fault("dies-listing")) {
        die();
    }
    if (fault("hangs-listing")) {
        hang();
    }
    return fault("none") ? 0 : fault("two") ? 2 : 1;
}
static ggml_backend_dev_t reg_device(ggml_backend_reg_t r, size_t i) { (void) r; return &devices[i]; }
static void * reg_address(ggml_backend_reg_t r, const char * name) {
    (void) r;
    return fault("repacks") && strcmp(name, "ggml_backend_dev_get_extra_bufts") == 0 ? (void *) extra : NULL;
}

GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg reg = {GGML_BACKEND_API_VERSION, {reg_name, reg_count, reg_device, reg_address}, NULL};
    if (fault("dies-loading")) {
        die();
    }
    if (fault("another-release")) {
        reg.api_version++;
    }
    if (fault("no-driver")) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        devices[i] = (struct ggml_backend_device){
            {.get_name = device_name, .get_description = device_about, .get_memory = device_memory, .get_type = device_type,
             .get_props = device_props, .init_backend = device_init, .get_buffer_type = device_buffer,
             .buffer_from_host_ptr = wrap, .supports_op = device_computes, .supports_buft = device_takes}, &reg, NULL};
    }
    own = (struct ggml_backend_buffer_type){
        {.get_name = buffer_name, .alloc_buffer = buffer_alloc, .get_alignment = buffer_alignment}, &devices[0], NULL};
    repacked = own;
    return &reg;
}
