/*
 * A compute module for tests: it says that it was loaded, and what else it does is decided when it is compiled.
 *
 *   MARKER  path of the file that it makes when it is loaded
 *   SCORE   what ggml_backend_score gives; without it there is no such function
 *   API     the version that its registry claims; without it, it has no registry to give
 */
#include <stdio.h>

#include "ggml-backend-impl.h"

__attribute__((constructor)) static void loaded(void) {
    FILE * f = fopen(MARKER, "a");
    if (f != NULL) {
        fputs("loaded\n", f);
        fclose(f);
    }
}

#ifdef SCORE
GGML_BACKEND_API int ggml_backend_score(void);
int ggml_backend_score(void) { return SCORE; }
#endif

GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

#ifdef API
static const char * name(ggml_backend_reg_t reg) { (void) reg; return "Planted"; }
static size_t no_devices(ggml_backend_reg_t reg) { (void) reg; return 0; }

ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg reg = {API, {name, no_devices, NULL, NULL}, NULL};
    return &reg;
}
#else
ggml_backend_reg_t ggml_backend_init(void) { return NULL; }
#endif
