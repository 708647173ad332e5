package llama

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mirror is a Go struct and the C struct that it mirrors.
type mirror struct {
	of     any    // the Go struct
	c      string // the C struct's tag
	head   bool   // the Go struct is the beginning of the C struct
	fields string // each Go field and its C name: "Length=n_length ..."
}

var mirrors = []mirror{
	{of: ModelParams{}, c: "llama_model_params", fields: `Devices=devices Overrides=tensor_buft_overrides GPULayers=n_gpu_layers SplitMode=split_mode
		LoadMode=load_mode LazyMode=lazy_mode MainGPU=main_gpu TensorSplit=tensor_split
		Progress=progress_callback ProgressData=progress_callback_user_data KVOverrides=kv_overrides
		VocabOnly=vocab_only CheckTensors=check_tensors UseExtraBufts=use_extra_bufts NoHost=no_host
		NoAlloc=no_alloc LoadMTP=load_mtp`},
	{of: BufferOverride{}, c: "llama_model_tensor_buft_override", fields: "Pattern=pattern Type=buft"},
	{of: KVOverride{}, c: "llama_model_kv_override", fields: "Tag=tag Key=key Value=val_str"},
	{of: ContextParams{}, c: "llama_context_params", fields: `Ctx=n_ctx Batch=n_batch Ubatch=n_ubatch SeqMax=n_seq_max RsSeq=n_rs_seq OutputsMax=n_outputs_max
		OutputsMaxPerSeq=n_outputs_max_per_seq Threads=n_threads ThreadsBatch=n_threads_batch Type=ctx_type
		RopeScaling=rope_scaling_type Pooling=pooling_type Attention=attention_type FlashAttn=flash_attn_type
		RopeBase=rope_freq_base RopeScale=rope_freq_scale YarnExt=yarn_ext_factor YarnAttn=yarn_attn_factor
		YarnFast=yarn_beta_fast YarnSlow=yarn_beta_slow YarnOrigCtx=yarn_orig_ctx DefragThold=defrag_thold
		EvalCallback=cb_eval EvalData=cb_eval_user_data TypeK=type_k TypeV=type_v AbortCallback=abort_callback
		AbortData=abort_callback_data Embeddings=embeddings OffloadKQV=offload_kqv NoPerf=no_perf
		OpOffload=op_offload SWAFull=swa_full KVUnified=kv_unified Samplers=samplers NSamplers=n_samplers
		CtxOther=ctx_other`},
	{of: Batch{}, c: "llama_batch", fields: "Tokens=n_tokens Token=token Embd=embd Pos=pos NSeqID=n_seq_id SeqID=seq_id Logits=logits"},
	{of: Tensor{}, c: "ggml_tensor", fields: `Type=type Buffer=buffer Ne=ne Nb=nb Op=op OpParams=op_params Flags=flags Src=src ViewSrc=view_src
		ViewOffs=view_offs Data=data Name=name Extra=extra`},
	{of: Graph{}, c: "ggml_cgraph", head: true, fields: "Size=size Nodes=n_nodes Leafs=n_leafs Node=nodes"},
	{of: BufferTypeInterface{}, c: "ggml_backend_buffer_type_i", fields: `GetName=get_name AllocBuffer=alloc_buffer GetAlignment=get_alignment GetMaxSize=get_max_size
		GetAllocSize=get_alloc_size IsHost=is_host`},
	{of: BufferType{}, c: "ggml_backend_buffer_type", fields: "Interface=iface Device=device Context=context"},
	{of: BufferInterface{}, c: "ggml_backend_buffer_i", fields: `Free=free_buffer GetBase=get_base InitTensor=init_tensor MemsetTensor=memset_tensor SetTensor=set_tensor
		GetTensor=get_tensor SetTensor2D=set_tensor_2d GetTensor2D=get_tensor_2d CopyTensor=cpy_tensor
		Clear=clear Reset=reset`},
	{of: Buffer{}, c: "ggml_backend_buffer", fields: "Interface=iface Type=buft Context=context Size=size Usage=usage"},
	{of: BackendInterface{}, c: "ggml_backend_i", fields: `GetName=get_name Free=free SetTensorAsync=set_tensor_async GetTensorAsync=get_tensor_async
		SetTensor2DAsync=set_tensor_2d_async GetTensor2DAsync=get_tensor_2d_async
		CopyTensorAsync=cpy_tensor_async Synchronize=synchronize PlanCreate=graph_plan_create
		PlanFree=graph_plan_free PlanUpdate=graph_plan_update PlanCompute=graph_plan_compute
		GraphCompute=graph_compute EventRecord=event_record EventWait=event_wait GraphOptimize=graph_optimize`},
	{of: Backend{}, c: "ggml_backend", fields: "GUID=guid Interface=iface Device=device Context=context"},
	{of: DeviceInterface{}, c: "ggml_backend_device_i", fields: `GetName=get_name GetDescription=get_description GetMemory=get_memory GetType=get_type GetProps=get_props
		InitBackend=init_backend GetBufferType=get_buffer_type GetHostBufferType=get_host_buffer_type
		BufferFromHostPtr=buffer_from_host_ptr SupportsOp=supports_op SupportsBuft=supports_buft
		OffloadOp=offload_op EventNew=event_new EventFree=event_free EventSynchronize=event_synchronize`},
	{of: Device{}, c: "ggml_backend_device", fields: "Interface=iface Registry=reg Context=context"},
	{of: DeviceProps{}, c: "ggml_backend_dev_props", fields: `Name=name Description=description MemFree=memory_free MemTotal=memory_total Type=type ID=device_id
		Async=caps.async HostBuffer=caps.host_buffer BufferFromHostPtr=caps.buffer_from_host_ptr
		Events=caps.events MmapSupport=caps.mmap_support`},
	{of: RegistryInterface{}, c: "ggml_backend_reg_i", fields: "GetName=get_name DeviceCount=get_device_count GetDevice=get_device GetProcAddress=get_proc_address"},
	{of: Registry{}, c: "ggml_backend_reg", fields: "APIVersion=api_version Interface=iface Context=context"},
	{of: threadpoolParams{}, c: "ggml_threadpool_params", fields: "CPUMask=cpumask Threads=n_threads Priority=prio Poll=poll Strict=strict_cpu Paused=paused"},
	{of: initParams{}, c: "ggml_init_params", fields: "Size=mem_size Buffer=mem_buffer NoAlloc=no_alloc"},
	{of: samplerChainParams{}, c: "llama_sampler_chain_params", fields: "NoPerf=no_perf"},
	{of: commonSession{}, c: "bmoe_common_session", fields: "Path=path Devices=devices DevicesN=n_devices Context=context Ubatch=ubatch " +
		"OutputsMax=outputs_max TypeK=type_k TypeV=type_v FlashAttn=flash_attn KVKey=kv_key KVValue=kv_value"},
	{of: commonOverride{}, c: "bmoe_common_override", fields: "Pattern=pattern Where=where"},
	{of: commonPlacement{}, c: "bmoe_common_placement", fields: "Overrides=overrides Split=split OverridesN=n_overrides Room=room Layers=layers"},
	{of: Memory{}, c: "bmoe_common_memory", fields: "Free=free Total=total Model=model Context=context Compute=compute"},
}

// constants are the C constants whose values are written down in Go.
var constants = map[string]int{
	"LLAMA_LOAD_MODE_NONE":              LoadRead,
	"LLAMA_LOAD_MODE_MMAP":              LoadMmap,
	"LLAMA_KV_OVERRIDE_TYPE_INT":        KVInt,
	"LLAMA_FLASH_ATTN_TYPE_AUTO":        -1, // as ContextOptions.FlashAttn says
	"LLAMA_FLASH_ATTN_TYPE_DISABLED":    0,
	"LLAMA_FLASH_ATTN_TYPE_ENABLED":     1,
	"GGML_BACKEND_API_VERSION":          APIVersion,
	"GGML_BACKEND_DEVICE_TYPE_CPU":      DeviceCPU,
	"GGML_BACKEND_DEVICE_TYPE_GPU":      DeviceGPU,
	"GGML_BACKEND_DEVICE_TYPE_IGPU":     DeviceIGPU,
	"GGML_BACKEND_DEVICE_TYPE_ACCEL":    DeviceAccel,
	"GGML_BACKEND_BUFFER_USAGE_WEIGHTS": usageWeights,
	"GGML_STATUS_FAILED":                StatusFailed,
	"GGML_STATUS_SUCCESS":               StatusSuccess,
	"GGML_STATUS_ABORTED":               StatusAborted,
	"GGML_LOG_LEVEL_ERROR":              logError,
	"GGML_LOG_LEVEL_CONT":               logCont,
	"GGML_OP_COUNT":                     opCount,
	"GGML_TYPE_COUNT":                   typeCount,
	"BMOE_COMMON_VERSION":               commonVersion,
	"BMOE_COMMON_DONE":                  commonDone,
	"BMOE_COMMON_NO_FIT":                commonNoFit,
}

// place is where a field lies in its struct, in bytes; of a whole struct, its size.
type place struct{ offset, size uintptr }

// pairs are a mirror's fields: the Go name and the C name.
func (m mirror) pairs() (list [][2]string) {
	for _, pair := range strings.Fields(m.fields) {
		goName, cName, _ := strings.Cut(pair, "=")
		list = append(list, [2]string{goName, cName})
	}
	return list
}

// wholeStruct is the name under which a struct's own size is kept.
const wholeStruct = "(all of it)"

// compare says of each Go field, and of each struct's size, that is not as in C what it is and what C has.
func compare(table []mirror, c map[string]place) (wrong []string) {
	for _, m := range table {
		t := reflect.TypeOf(m.of)
		check := func(field, cName string, is place) {
			if want, ok := c[m.c+"."+cName]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s.%s: no %s.%s in C", t.Name(), field, m.c, cName))
			} else if is != want {
				wrong = append(wrong, fmt.Sprintf("%s.%s: offset %d, size %d; %s.%s in C: offset %d, size %d",
					t.Name(), field, is.offset, is.size, m.c, cName, want.offset, want.size))
			}
		}
		named := map[string]bool{"_": true}
		for _, pair := range m.pairs() {
			named[pair[0]] = true
			if f, ok := t.FieldByName(pair[0]); ok {
				check(f.Name, pair[1], place{f.Offset, f.Type.Size()})
			} else {
				wrong = append(wrong, fmt.Sprintf("%s: no field %s for %s.%s", t.Name(), pair[0], m.c, pair[1]))
			}
		}
		for i := range t.NumField() {
			if name := t.Field(i).Name; !named[name] {
				wrong = append(wrong, fmt.Sprintf("%s.%s: no C name for it", t.Name(), name))
			}
		}
		if !m.head {
			check(wholeStruct, wholeStruct, place{0, t.Size()})
		}
	}
	return wrong
}

// headersUsed declare all that is mirrored and called.
const headersUsed = `
#include <stddef.h>
#include <stdio.h>
#include "llama.h"
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "bmoe-common.h"
`

// measure compiles a program that prints the places of every mirrored struct's fields, and the constants, and runs it.
func measure(t *testing.T) (places map[string]place, values map[string]int) {
	t.Helper()
	var c strings.Builder
	c.WriteString(headersUsed + "int main(void) {\n")
	for _, m := range mirrors {
		if !m.head {
			fmt.Fprintf(&c, "printf(\"%s.%s|0|%%zu\\n\", sizeof(struct %s));\n", m.c, wholeStruct, m.c)
		}
		for _, pair := range m.pairs() {
			f := pair[1]
			fmt.Fprintf(&c, "printf(\"%s.%s|%%zu|%%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *) 0)->%s));\n", m.c, f, m.c, f, m.c, f)
		}
	}
	for name := range constants {
		fmt.Fprintf(&c, "printf(\"%s|%%d\\n\", (int) %s);\n", name, name)
	}
	c.WriteString("return 0;\n}\n")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout.exe")
	require.NoError(t, os.WriteFile(source, []byte(c.String()), 0o600))
	compile(t, source, program)
	out, err := exec.CommandContext(t.Context(), program).Output()
	require.NoError(t, err)

	places, values = map[string]place{}, map[string]int{}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), "|")
		var p place
		if n, _ := fmt.Sscanf(rest, "%d|%d", &p.offset, &p.size); n == 2 {
			places[name] = p
			continue
		}
		var v int
		_, err := fmt.Sscanf(rest, "%d", &v)
		require.NoError(t, err, lines.Text())
		values[name] = v
	}
	return places, values
}

func TestLayout(t *testing.T) {
	t.Parallel()
	places, values := measure(t)
	assert.Empty(t, compare(mirrors, places))
	assert.Equal(t, constants, values)

	// Each place is watched: moved or resized in C, it is found and named.
	for name, p := range places {
		for _, changed := range []place{{p.offset + 8, p.size}, {p.offset, p.size + 1}} {
			doctored := maps.Clone(places)
			doctored[name] = changed
			wrong := compare(mirrors, doctored)
			require.Len(t, wrong, 1, name)
			assert.Contains(t, wrong[0], name+" in C")
		}
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	type Right struct {
		A int32
		_ int32
		B uintptr
	}
	type Moved struct {
		B uintptr
		A int32
		_ int32
	}
	type Narrow struct {
		A int16
		B uintptr
	}
	type Short struct{ A int32 }
	c := map[string]place{"s.a": {0, 4}, "s.b": {8, 8}, "s." + wholeStruct: {0, 16}}
	for _, test := range []struct {
		mirror mirror
		want   []string
	}{
		{mirror{of: Right{}, c: "s", fields: "A=a B=b"}, nil},
		{mirror{of: Short{}, c: "s", fields: "A=a", head: true}, nil},
		{mirror{of: Moved{}, c: "s", fields: "A=a B=b"}, []string{
			"Moved.A: offset 8, size 4; s.a in C: offset 0, size 4",
			"Moved.B: offset 0, size 8; s.b in C: offset 8, size 8",
		}},
		{mirror{of: Narrow{}, c: "s", fields: "A=a B=b"}, []string{"Narrow.A: offset 0, size 2; s.a in C: offset 0, size 4"}},
		{mirror{of: Short{}, c: "s", fields: "A=a"}, []string{"Short.(all of it): offset 0, size 4; s.(all of it) in C: offset 0, size 16"}},
		{mirror{of: Right{}, c: "s", fields: "A=a"}, []string{"Right.B: no C name for it"}},
		{mirror{of: Right{}, c: "s", fields: "A=a B=b C=c"}, []string{"Right: no field C for s.c"}},
		{mirror{of: Right{}, c: "s", fields: "A=a B=c"}, []string{"Right.B: no s.c in C"}},
	} {
		assert.Equal(t, test.want, compare([]mirror{test.mirror}, c))
	}
}

// TestCallsMatchTheHeaders compiles a call of every C function with arguments made of the Go function's parameters: their
// number, structs, pointers and floats, and the result's size, are those of the declaration.
func TestCallsMatchTheHeaders(t *testing.T) {
	t.Parallel()
	structs := map[reflect.Type]string{}
	for _, m := range mirrors {
		structs[reflect.TypeOf(m.of)] = m.c
	}
	argument := func(p reflect.Type) string {
		switch p.Kind() {
		case reflect.Struct:
			return fmt.Sprintf("*(struct %s *) nothing", structs[p])
		case reflect.String:
			return `""`
		case reflect.Pointer:
			return "(void *) nothing"
		case reflect.Float32:
			return "1.0f"
		case reflect.Bool:
			return "true"
		case reflect.Uintptr:
			return "0" // a pointer or a size
		default:
			return "1"
		}
	}
	var c strings.Builder
	c.WriteString(headersUsed + "extern void * nothing;\n")
	calls := reflect.TypeFor[calls]()
	for i := range calls.NumField() {
		f := calls.Field(i).Type
		_, name, _ := strings.Cut(calls.Field(i).Tag.Get("c"), ":")
		var args []string
		for j := range f.NumIn() {
			args = append(args, argument(f.In(j)))
		}
		call := fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
		if f.NumOut() == 0 {
			fmt.Fprintf(&c, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), void), \"%s\");\n", call, name)
			continue
		}
		size := f.Out(0).Size()
		if f.Out(0).Kind() == reflect.String {
			size = reflect.TypeFor[uintptr]().Size()
		}
		fmt.Fprintf(&c, "_Static_assert(!__builtin_types_compatible_p(__typeof__(%s), void) && sizeof(%s) == %d, \"%s\");\n", call, call, size, name)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "calls.c")
	require.NoError(t, os.WriteFile(source, []byte(c.String()), 0o600))
	compile(t, source, filepath.Join(dir, "calls.o"), "-c")
}

// TestEveryStructIsMirrored finds in the calls no struct that the table lacks.
func TestEveryStructIsMirrored(t *testing.T) {
	t.Parallel()
	var known []reflect.Type
	for _, m := range mirrors {
		known = append(known, reflect.TypeOf(m.of))
	}
	calls := reflect.TypeFor[calls]()
	for i := range calls.NumField() {
		f := calls.Field(i).Type
		for _, p := range slices.Concat(slices.Collect(f.Ins()), slices.Collect(f.Outs())) {
			if p.Kind() == reflect.Struct {
				assert.Contains(t, known, p)
			}
		}
	}
}
