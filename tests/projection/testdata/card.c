/*
 * A compute module for tests: cards of a given memory that a model can be fitted to. They have no memory in truth, and compute
 * nothing: a projection allocates nothing and computes nothing.
 *
 *   BMOE_TEST_CARDS  environment: the MiB that are free on each card, by commas
 */
#include <stdio.h>
#include <stdlib.h>

#include "ggml-backend-impl.h"

#define CARDS 2

static struct card {
    char                            name[16];
    size_t                          bytes;
    struct ggml_backend_device      device;
    struct ggml_backend_buffer_type buffer;
} cards[CARDS];

static size_t count;

static struct card * card_of(ggml_backend_dev_t dev) { return dev->context; }

static const char * buffer_name(ggml_backend_buffer_type_t t) { return ((struct card *) t->context)->name; }
static ggml_backend_buffer_t buffer_alloc(ggml_backend_buffer_type_t t, size_t n) { (void) t; (void) n; return NULL; }
static size_t buffer_alignment(ggml_backend_buffer_type_t t) { (void) t; return 128; }

static const char * backend_name(ggml_backend_t b) { return card_of(b->device)->name; }
static void backend_free(ggml_backend_t b) { free(b); }
static enum ggml_status backend_compute(ggml_backend_t b, struct ggml_cgraph * g) { (void) b; (void) g; return GGML_STATUS_FAILED; }

static const char * device_name(ggml_backend_dev_t d) { return card_of(d)->name; }
static void device_memory(ggml_backend_dev_t d, size_t * unused, size_t * total) { *unused = *total = card_of(d)->bytes; }
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t d) { (void) d; return GGML_BACKEND_DEVICE_TYPE_GPU; }
static void device_props(ggml_backend_dev_t d, struct ggml_backend_dev_props * p) {
    p->name = p->description = device_name(d);
    p->type = device_type(d);
    device_memory(d, &p->memory_free, &p->memory_total);
}
static ggml_backend_t device_init(ggml_backend_dev_t d, const char * params) {
    (void) params;
    ggml_backend_t b = calloc(1, sizeof *b);
    b->iface.get_name = backend_name;
    b->iface.free = backend_free;
    b->iface.graph_compute = backend_compute;
    b->device = d;
    return b;
}
static ggml_backend_buffer_type_t device_buffer(ggml_backend_dev_t d) { return &card_of(d)->buffer; }
static bool device_computes(ggml_backend_dev_t d, const struct ggml_tensor * t) { (void) d; (void) t; return true; }
static bool device_takes(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) { return t == &card_of(d)->buffer; }

static const char * reg_name(ggml_backend_reg_t r) { (void) r; return "CARD"; }
static size_t reg_count(ggml_backend_reg_t r) { (void) r; return count; }
static ggml_backend_dev_t reg_device(ggml_backend_reg_t r, size_t i) { (void) r; return &cards[i].device; }

GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg reg = {GGML_BACKEND_API_VERSION, {reg_name, reg_count, reg_device, NULL}, NULL};
    const char * sizes = getenv("BMOE_TEST_CARDS");
    while (sizes != NULL && *sizes != 0 && count < CARDS) {
        struct card * c = &cards[count];
        char * end;
        snprintf(c->name, sizeof c->name, "CARD%zu", count++);
        c->bytes = (size_t) strtoull(sizes, &end, 10) << 20;
        sizes = *end == ',' ? end + 1 : end;
        c->device = (struct ggml_backend_device){
            {.get_name = device_name, .get_description = device_name, .get_memory = device_memory, .get_type = device_type,
             .get_props = device_props, .init_backend = device_init, .get_buffer_type = device_buffer,
             .supports_op = device_computes, .supports_buft = device_takes}, &reg, c};
        c->buffer = (struct ggml_backend_buffer_type){
            {.get_name = buffer_name, .alloc_buffer = buffer_alloc, .get_alignment = buffer_alignment}, &c->device, c};
    }
    return &reg;
}
