// What bmoe asks of llama.cpp's common library, as plain C: where a model's layers fit, and what a session over it reserves.
//
// No call throws, prints or keeps anything. What went wrong is written to `why`. Sizes are bytes. Strings are UTF-8 and end
// in a zero. A device is named as ggml lists it, and nothing is asked of one that is not named.
#pragma once

#include <stdint.h>

#ifdef _WIN32
#define BMOE_COMMON_CALL __declspec(dllexport)
#else
#define BMOE_COMMON_CALL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

// A caller that was built for another version is refused by it.
#define BMOE_COMMON_VERSION 1

// What a call answers.
enum bmoe_common_status {
    BMOE_COMMON_DONE     = 0,
    BMOE_COMMON_NO_FIT   = 1, // no placement leaves the devices their margin
    BMOE_COMMON_FAILED   = 2, // why says what
};

// A session as it would be opened. Fields that are not here have llama.cpp's defaults.
struct bmoe_common_session {
    const char *         path;        // of the model's file, or of its first shard
    const char * const * devices;     // that layers may go to, in order
    uint32_t             n_devices;   // 0: the host alone
    uint32_t             context;     // tokens
    uint32_t             ubatch;      // tokens of the widest graph
    uint32_t             outputs_max; // rows of logits that a graph may give
    int32_t              type_k;      // ggml_type of the KV cache
    int32_t              type_v;
    int32_t              flash_attn;  // llama_flash_attn_type
    int32_t              reserved;
    const char *         kv_key;      // metadata to replace, or null
    int64_t              kv_value;
};

// Tensors whose name matches go to the buffer type of that name.
struct bmoe_common_override {
    char pattern[128];
    char where[64];
};

// Which layers go to devices.
struct bmoe_common_placement {
    struct bmoe_common_override * overrides; // the first that matches decides
    int32_t *                     split;     // layers of each device of the session; all 0: by the memory they have free
    uint32_t                      n_overrides;
    uint32_t                      room;      // for overrides
    int32_t                       layers;    // counted from the last, the output head being one more; -1: all
    int32_t                       reserved;
};

// The memory of one place.
struct bmoe_common_memory {
    int64_t free, total;             // as the device reports it; 0: it does not
    int64_t model, context, compute; // that the session takes there
};

BMOE_COMMON_CALL int32_t bmoe_common_version(void);

// Asks the fitter for the placement that leaves every device `margin` bytes. `placement` has room for the answer.
BMOE_COMMON_CALL int32_t bmoe_common_fit(const struct bmoe_common_session * session, uint64_t margin,
    struct bmoe_common_placement * placement, char * why, uint64_t why_size);

// Writes the memory that the session takes when placed so: of each of its devices in order, and last of the host.
BMOE_COMMON_CALL int32_t bmoe_common_project(const struct bmoe_common_session * session,
    const struct bmoe_common_placement * placement, struct bmoe_common_memory * memory, char * why, uint64_t why_size);

// Writes what a live llama_context holds in host memory.
BMOE_COMMON_CALL int32_t bmoe_common_held(const void * context, struct bmoe_common_memory * host, char * why, uint64_t why_size);

#ifdef __cplusplus
}
#endif
