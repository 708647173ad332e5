// The one file that touches llama.cpp's common library. See bmoe-common.h for what each call is asked.

#include "bmoe-common.h"

#include "fit.h"
#include "json.h"
#include "log.h"

#include "../src/llama-ext.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

// common writes its log itself, from a thread of its own. None of that is wanted: with no threshold that a line could reach,
// nothing is written and its log.cpp is not needed.
int  common_log_get_verbosity_thold(void) { return -1; }
bool common_log_get_jsonl(void) { return false; }
common_log * common_log_main() { return nullptr; }
void common_log_add(common_log *, ggml_log_level, const char *, ...) {}
void common_log_add_json(common_log *, const char *, const common_json &) {}

namespace {

void tell(char * why, uint64_t size, const char * text) {
    if (why && size > 0) {
        std::strncpy(why, text, size - 1);
        why[size - 1] = 0;
    }
}

// guarded runs f and turns whatever it throws into a status.
template <typename F> int32_t guarded(char * why, uint64_t size, F f) {
    tell(why, size, "");
    try {
        return f();
    } catch (const std::exception & e) {
        tell(why, size, e.what());
    } catch (...) {
        tell(why, size, "an exception of no known kind");
    }
    return BMOE_COMMON_FAILED;
}

ggml_backend_dev_t host_device() {
    ggml_backend_dev_t host = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!host) {
        throw std::runtime_error("no CPU module is loaded"); // common would throw with its logger still in place
    }
    return host;
}

ggml_backend_buffer_type_t buffer_type(const char * name) {
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        for (ggml_backend_buffer_type_t type : {ggml_backend_dev_buffer_type(dev), ggml_backend_dev_host_buffer_type(dev)}) {
            if (type && std::strcmp(ggml_backend_buft_name(type), name) == 0) {
                return type;
            }
        }
    }
    throw std::runtime_error(std::string("there is no buffer type ") + name);
}

// opening is a session in llama.cpp's terms. It owns what the params point to.
struct opening {
    llama_model_params                            model   = llama_model_default_params();
    llama_context_params                          context = llama_context_default_params();
    std::vector<ggml_backend_dev_t>               devices;
    std::vector<llama_model_kv_override>          kv;
    std::vector<float>                            split     = std::vector<float>(llama_max_devices(), 0.0f);
    std::vector<llama_model_tensor_buft_override> overrides =
        std::vector<llama_model_tensor_buft_override>(llama_max_tensor_buft_overrides(), {nullptr, nullptr});

    explicit opening(const bmoe_common_session & s) {
        host_device();
        if (s.n_devices >= llama_max_devices()) {
            throw std::runtime_error("more devices than llama.cpp takes");
        }
        for (uint32_t i = 0; i < s.n_devices; i++) {
            ggml_backend_dev_t dev = ggml_backend_dev_by_name(s.devices[i]);
            if (!dev) {
                throw std::runtime_error(std::string("there is no device ") + s.devices[i]);
            }
            devices.push_back(dev);
        }
        devices.push_back(nullptr); // alone, it keeps llama.cpp from taking every device it finds
        model.devices         = devices.data();
        model.use_extra_bufts = false;
        model.load_mtp        = false;
        if (s.kv_key) {
            llama_model_kv_override replaced = {};
            replaced.tag     = LLAMA_KV_OVERRIDE_TYPE_INT;
            replaced.val_i64 = s.kv_value;
            if (std::strlen(s.kv_key) >= sizeof replaced.key) {
                throw std::runtime_error("the metadata key is longer than llama.cpp takes");
            }
            std::strcpy(replaced.key, s.kv_key);
            kv = {replaced, {}};
            model.kv_overrides = kv.data();
        }
        context.n_ctx           = s.context;
        context.n_batch         = s.ubatch;
        context.n_ubatch        = s.ubatch;
        context.n_outputs_max   = s.outputs_max;
        context.type_k          = (ggml_type) s.type_k;
        context.type_v          = (ggml_type) s.type_v;
        context.flash_attn_type = (llama_flash_attn_type) s.flash_attn;
    }

    void place(const bmoe_common_placement & p) {
        if (p.n_overrides >= overrides.size()) {
            throw std::runtime_error("more overrides than llama.cpp takes");
        }
        for (uint32_t i = 0; i < p.n_overrides; i++) {
            overrides[i] = {p.overrides[i].pattern, buffer_type(p.overrides[i].where)};
        }
        if (p.n_overrides > 0) {
            model.tensor_buft_overrides = overrides.data();
        }
        for (size_t i = 0; i + 1 < devices.size(); i++) {
            split[i] = (float) p.split[i];
        }
        model.tensor_split = split.data();
        model.n_gpu_layers = p.layers;
    }
};

void copy(char * to, size_t room, const char * from) {
    if (std::strlen(from) >= room) {
        throw std::runtime_error(std::string("a name is too long: ") + from);
    }
    std::strcpy(to, from);
}

// counted is how often the host's compute buffer is in common's sum. Every context computes with each ACCEL device there is,
// and a buffer that they share with the host is added up once for each of them. (ggml's allocator gives backends of one buffer
// type one buffer; llama_context::memory_breakdown adds up what it would be for each backend.) Beside a device that has host
// memory of its own the CPU uses that, and one such ACCEL device alone shares with nobody.
int64_t counted(const opening & o) {
    ggml_backend_buffer_type_t cpu = ggml_backend_dev_buffer_type(host_device());
    if (o.devices[0] && ggml_backend_dev_host_buffer_type(o.devices[0])) {
        return 1;
    }
    int64_t n = 1;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_ACCEL && ggml_backend_dev_buffer_type(dev) == cpu) {
            n++;
        }
    }
    return n;
}

} // namespace

int32_t bmoe_common_version(void) { return BMOE_COMMON_VERSION; }

int32_t bmoe_common_fit(const bmoe_common_session * session, uint64_t margin, bmoe_common_placement * placement, char * why,
    uint64_t why_size) {
    return guarded(why, why_size, [&]() -> int32_t {
        opening o(*session);
        std::vector<size_t> margins(llama_max_devices(), (size_t) margin);
        switch (common_fit_params(session->path, &o.model, &o.context, o.split.data(), o.overrides.data(), margins.data(),
            session->context, nullptr, GGML_LOG_LEVEL_ERROR)) {
            case COMMON_PARAMS_FIT_STATUS_SUCCESS:
                break;
            case COMMON_PARAMS_FIT_STATUS_FAILURE:
                tell(why, why_size, "no placement leaves the devices their margin");
                return BMOE_COMMON_NO_FIT;
            default:
                throw std::runtime_error("llama.cpp can't open the model");
        }
        placement->layers      = o.model.n_gpu_layers;
        placement->n_overrides = 0;
        for (const auto & v : o.overrides) {
            if (!v.pattern) {
                break;
            }
            if (placement->n_overrides == placement->room) {
                throw std::runtime_error("there is no room for all overrides");
            }
            bmoe_common_override & to = placement->overrides[placement->n_overrides++];
            copy(to.pattern, sizeof to.pattern, v.pattern);
            copy(to.where, sizeof to.where, ggml_backend_buft_name(v.buft));
        }
        for (uint32_t i = 0; i < session->n_devices; i++) {
            placement->split[i] = (int32_t) o.split[i];
        }
        return BMOE_COMMON_DONE;
    });
}

int32_t bmoe_common_project(const bmoe_common_session * session, const bmoe_common_placement * placement,
    bmoe_common_memory * memory, char * why, uint64_t why_size) {
    return guarded(why, why_size, [&]() -> int32_t {
        opening o(*session);
        o.place(*placement);
        std::vector<ggml_backend_dev_t> devices;
        uint32_t layers, length, experts;
        auto all = common_get_device_memory_data(session->path, &o.model, &o.context, devices, layers, length, experts, GGML_LOG_LEVEL_ERROR);
        if (all.size() != session->n_devices + 1) {
            throw std::runtime_error("llama.cpp placed the model on other devices than it was given");
        }
        all.back().compute /= counted(o);
        for (size_t i = 0; i < all.size(); i++) {
            memory[i] = {all[i].free, all[i].total, (int64_t) all[i].model, (int64_t) all[i].context, (int64_t) all[i].compute};
        }
        return BMOE_COMMON_DONE;
    });
}

int32_t bmoe_common_held(const void * context, bmoe_common_memory * host, char * why, uint64_t why_size) {
    return guarded(why, why_size, [&]() -> int32_t {
        *host = {};
        for (const auto & [type, held] : llama_get_memory_breakdown((const llama_context *) context)) {
            if (ggml_backend_buft_is_host(type)) {
                host->model   += (int64_t) held.model;
                host->context += (int64_t) held.context;
                host->compute += (int64_t) held.compute;
            }
        }
        return BMOE_COMMON_DONE;
    });
}
