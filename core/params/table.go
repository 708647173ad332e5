package params

import "math"

// Groups of the help, in its order.
const (
	groupModel    = "Model"
	groupRequest  = "Prompt and answer"
	groupSampling = "Sampling"
	groupPlan     = "Planning"
	groupStream   = "Streaming experts from storage"
	groupDevice   = "Devices (this version computes on the host alone and refuses them)"
	groupOutput   = "Output"
	groupOther    = "Instead of a run"
)

const (
	most   = math.MaxInt32 // llama.cpp counts in int32
	memory = 1 << 60       // bytes; more than any machine holds
)

// streaming are the parameters of which one must be on for a streaming knob to mean anything.
var streaming = append([]string{"moe-stream"}, planning...)

// planning are the parameters that have a plan made.
var planning = []string{"auto", "plan-only", "plan-json"}

// looking are the parameters that have the machine looked at.
var looking = append([]string{"probe"}, planning...)

// cacheTypes are the types llama.cpp keeps a KV cache in.
var cacheTypes = []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}

var rows = []*Param{
	{Name: "model", Short: "m", Group: groupModel, Scope: Run, Kind: Path, Arg: "FILE",
		Help: "The model, a GGUF file; of a model in several files, the first."},
	{Name: "ctx-size", Short: "c", Group: groupModel, Scope: Run, Kind: Int, Arg: "N|auto", Auto: true, Min: 0, Max: most,
		Default: auto,
		Help:    "Tokens of context, prompt and answer together. auto is 4096, or the model's own length where that is less; 0 is the model's own."},
	{Name: "threads", Short: "t", Group: groupModel, Scope: Run, Kind: Int, Arg: "N|auto", Auto: true, Min: 1, Max: 512,
		Default: auto,
		Help:    "Threads that make the answer. auto is the physical cores this process may use."},
	{Name: "threads-batch", Alias: "tb", Group: groupModel, Scope: Run, Kind: Int, Arg: "N|auto", Auto: true, Min: 1, Max: 512,
		Default: auto,
		Help:    "Threads that read the prompt. auto is the same as --threads."},
	{Name: "ubatch", Alias: "ub", Group: groupModel, Scope: Run, Kind: Int, Arg: "N|auto", Auto: true, Min: 1, Max: most,
		Default: auto,
		Help:    "Tokens of the prompt computed at once. Narrower takes less memory and reads the experts more often. auto is the context."},
	{Name: "cache-type-k", Alias: "ctk", Group: groupModel, Scope: Run, Kind: Enum, Arg: "TYPE", Choices: cacheTypes,
		Default: "f16",
		Help:    "Type of the keys in the KV cache."},
	{Name: "cache-type-v", Alias: "ctv", Group: groupModel, Scope: Run, Kind: Enum, Arg: "TYPE", Choices: cacheTypes,
		Default: "f16",
		Help:    "Type of the values in the KV cache. A quantized one needs flash attention."},
	{Name: "flash-attn", Alias: "fa", Group: groupModel, Scope: Run, Kind: Enum, Arg: "WHEN", Choices: []string{auto, "on", "off"},
		Default: auto,
		Help:    "Flash attention. auto lets llama.cpp choose."},
	{Name: "n-expert-used", Group: groupModel, Scope: Run, Kind: Int, Arg: "N|auto", Auto: true, Min: 1, Max: 1024,
		Default: auto, Lossy: true,
		Help: "Experts a token is routed to in each layer. auto is the model's own number. No plan ever sets it."},

	{Name: "prompt", Short: "p", Group: groupRequest, Scope: Request, Kind: String, Arg: "TEXT",
		Help: "The prompt."},
	{Name: "file", Short: "f", Group: groupRequest, Scope: Request, Kind: Path, Arg: "FILE",
		Help: "Read the prompt from a file, or from standard input if FILE is -. One newline at the end is left out."},
	{Name: "n-predict", Short: "n", Group: groupRequest, Scope: Request, Kind: Int, Arg: "N", Min: 0, Max: most,
		Default: "256",
		Help:    "Tokens to generate at most."},
	{Name: "ignore-eos", Group: groupRequest, Scope: Request, Kind: Bool, Default: "off",
		Help: "Go on where the model would end its answer."},

	{Name: "temp", Group: groupSampling, Scope: Request, Kind: Float, Arg: "T", Min: 0, Max: 100,
		Default: "0",
		Help:    "Temperature. 0 always takes the likeliest token. Where another sampling flag is given and this one is not, it is 0.8."},
	{Name: "top-k", Group: groupSampling, Scope: Request, Kind: Int, Arg: "N", Min: 0, Max: most,
		Default: "40",
		Help:    "Sample from the N likeliest tokens. 0 is from all."},
	{Name: "top-p", Group: groupSampling, Scope: Request, Kind: Float, Arg: "P", Min: 0, Max: 1,
		Default: "0.95",
		Help:    "Sample from the likeliest tokens that together have probability P. 1 is from all."},
	{Name: "min-p", Group: groupSampling, Scope: Request, Kind: Float, Arg: "P", Min: 0, Max: 1,
		Default: "0.05",
		Help:    "Sample from tokens at least P times as likely as the likeliest. 0 is from all."},
	{Name: "seed", Short: "s", Group: groupSampling, Scope: Request, Kind: Int, Arg: "N|auto", Auto: true, Min: 0, Max: math.MaxUint32,
		Default: auto,
		Help:    "Seed of the sampling. The same seed gives the same answer. auto draws one and says which."},

	{Name: "auto", Alias: "plan-run", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "off",
		Help: "Look at the model and the machine, choose everything that was not set by hand, and say why."},
	{Name: "plan-explain", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "off", Needs: planning,
		Help: "Print the full reason of every choice in place of the brief one."},
	{Name: "machine", Group: groupPlan, Scope: Plan, Kind: Path, Arg: "FILE", Needs: planning,
		Help: "Plan with the facts in FILE in place of those of this machine."},
	{Name: "model-profile", Group: groupPlan, Scope: Plan, Kind: Path, Arg: "FILE", Needs: planning[1:],
		Help: "Plan for the model that FILE describes in place of one that is here."},
	{Name: "probe-io", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "on", Needs: planning,
		Help: "Measure the devices, the processor and the drive that the experts are on, which takes some seconds. --no-probe-io plans from what costs nothing to ask."},
	{Name: "probe-mem", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "off", Needs: looking,
		Help: "Measure how much memory this machine lets a process keep, by holding more and more of it until the first is taken back. Other programs may slow down while it lasts."},
	{Name: "isolated-probes", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "on",
		Help: "Ask each device, and whatever else a driver or a file may end, in a process of its own. With --no-isolated-probes a driver that fails ends this program."},
	{Name: "probe-limit", Group: groupPlan, Scope: Plan, Kind: Duration, Arg: "TIME", Min: 0.1, Max: 3600,
		Default: "2m0s",
		Help:    "How long such a process may take before it is ended and its device left out."},
	{Name: "history", Group: groupPlan, Scope: Plan, Kind: Bool, Default: "off",
		Help: "Print what plans predicted on this machine and what came of them, in place of a run. --no-history keeps no record of this run and plans as if there were none."},
	{Name: "memory", Group: groupPlan, Scope: Run, Kind: Size, Arg: "SIZE|auto", Auto: true, Min: 64 << 20, Max: memory,
		Default: auto, Needs: streaming,
		Help: "Memory the run may hold, such as 3GiB or 3072M. auto is what the machine lets this process hold."},

	{Name: "moe-stream", Group: groupStream, Scope: Run, Kind: Bool, Default: "off",
		Help: "Hold in memory what every token needs and read experts from storage as they are routed to."},
	{Name: "cache-mb", Group: groupStream, Scope: Run, Kind: Size, Arg: "N|auto", Auto: true, Unit: MiB, Min: 0, Max: memory,
		Default: auto, Needs: streaming,
		Help: "MiB of memory that keep experts between tokens. 0 keeps none. auto is what is left of the memory the run may hold."},
	{Name: "io-threads", Group: groupStream, Scope: Run, Kind: Int, Arg: "N", Min: 1, Max: 64,
		Default: "4", Needs: streaming,
		Help: "Lanes: reads in flight at a time."},
	{Name: "overlap", Group: groupStream, Scope: Run, Kind: Bool, Default: "on", Needs: streaming,
		Help: "Compute the experts that are in memory while the others are read."},
	{Name: "odirect", Group: groupStream, Scope: Run, Kind: Bool, Default: "on", Needs: streaming,
		Help: "Read experts past the system's file cache, where the file system allows it."},
	{Name: "dense-weights", Group: groupStream, Scope: Run, Kind: Enum, Arg: "HOW", Choices: []string{"mmap", "warm", "anon", "pinned"},
		Default: "anon", Needs: streaming,
		Help: "Where the weights that every token needs are: mmap, mapped from the file; warm, the same and read once; anon, memory of this process; pinned, memory that the system may not take back."},

	{Name: "release-mmap", Group: groupStream, Scope: Run, Kind: Bool, Default: "off", Needs: streaming,
		Help: "Give the mapping of the model's file back after loading. It always is where the dense weights are in memory; where they are mapped it stays, since they are used out of it."},

	{Name: "cache-pin", Group: groupStream, Scope: Run, Kind: Bool, Default: "off", Needs: streaming,
		Help: "Lock the expert cache in memory, as far as the system lets this process."},
	{Name: "cache-pin-fit", Group: groupStream, Scope: Run, Kind: Bool, Default: "off", Needs: streaming,
		Help: "Where the system stops locking part way, make the cache as large as what it locked, and no smaller than one token needs."},

	{Name: "device", Alias: "dev", Group: groupDevice, Scope: Run, Kind: String, Arg: "NAMES",
		Help: "Devices the run may use, separated by commas. Empty is none."},
	{Name: "n-gpu-layers", Alias: "ngl", Group: groupDevice, Scope: Run, Kind: Int, Arg: "N", Min: 0, Max: most,
		Default: "0",
		Help:    "Layers held and computed on devices, counted from the last."},
	{Name: "device-split", Group: groupDevice, Scope: Run, Kind: String, Arg: "NAME=N,...",
		Help: "How many of those layers each device takes, in order."},
	{Name: "override-tensor", Alias: "ot", Group: groupDevice, Scope: Run, Kind: String, Arg: "PATTERN=WHERE,...",
		Help: "Tensors whose name matches PATTERN go to the buffer WHERE. The first that matches decides."},
	{Name: "prefill-device", Group: groupDevice, Scope: Run, Kind: String, Arg: "NAME", Needs: streaming,
		Help: "Device that computes streamed experts while the prompt is read. Empty is the host."},
	{Name: "prefill-slots", Group: groupDevice, Scope: Run, Kind: Int, Arg: "N", Min: 1, Max: 2,
		Default: "2", Needs: streaming,
		Help: "Layers of experts the prefill device holds at a time: 2 reads one while the other is computed."},
	{Name: "prefill-slots-on-demand", Group: groupDevice, Scope: Run, Kind: Bool, Default: "off", Needs: streaming,
		Help: "Hold the prefill device's slots only while a prompt is read, taking turns with the cache."},
	{Name: "prefill-best-effort", Group: groupDevice, Scope: Run, Kind: Bool, Default: "off", Needs: streaming,
		Help: "Where the prefill device cannot be set up, read the prompt on the host in place of failing."},
	{Name: "prefill-min-tokens", Group: groupDevice, Scope: Run, Kind: Int, Arg: "N", Min: 1, Max: most,
		Default: "32", Needs: streaming,
		Help: "Narrowest graph, in tokens, that the prefill device is given."},
	{Name: "prefill-verify", Group: groupDevice, Scope: Run, Kind: Bool, Default: "on", Needs: streaming,
		Help: "Compare the prefill device with the host on the model itself before it is kept."},

	{Name: "csv", Group: groupOutput, Scope: Output, Kind: Path, Arg: "FILE",
		Help: "Write a row for each token to FILE; its columns are below."},
	{Name: "progress", Group: groupOutput, Scope: Output, Kind: Bool, Default: "off",
		Help: "Print a line of JSON for each token, for programs, in place of the text; its fields are below."},
	{Name: "verbose", Short: "v", Group: groupOutput, Scope: Output, Kind: Bool, Default: "off",
		Help: "The same as --log-level debug."},
	{Name: "log-level", Group: groupOutput, Scope: Output, Kind: Enum, Arg: "LEVEL", Choices: []string{"debug", "info", "warn", "error"},
		Default: "error",
		Help:    "What to log on standard error, llama.cpp's own log included."},

	{Name: "plan-only", Alias: "plan", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "Print the plan and the command line that reproduces it. The model is not loaded."},
	{Name: "plan-json", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "The same for programs, as JSON."},
	{Name: "probe", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "Print every fact about this machine with its source, and how long each step took. With -m, what a plan for that model measures is among them."},
	{Name: "save-machine", Group: groupOther, Scope: Action, Kind: Path, Arg: "FILE",
		Help: "Write what is known of this machine to FILE, for --machine, or to standard output if FILE is -. It names no user and no directory."},
	{Name: "save-model", Group: groupOther, Scope: Action, Kind: Path, Arg: "FILE",
		Help: "Write what is known of the model to FILE, for --model-profile. It names no user and no directory."},
	{Name: "list-devices", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "List the devices that llama.cpp finds."},
	{Name: "version", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "Print the versions of bmoe and of llama.cpp, and the CPU variant in use. With -v, what the release was made of, and whether its files are still the same."},
	{Name: "manual", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "Print the manual page, for man."},
	{Name: "completion", Group: groupOther, Scope: Action, Kind: Enum, Arg: "SHELL", Choices: []string{"bash", "zsh", "fish", "powershell"},
		Default: "bash",
		Help:    "Print a script that completes the flags in that shell."},
	{Name: "help", Short: "h", Group: groupOther, Scope: Action, Kind: Bool, Default: "off",
		Help: "Print this text."},
}

var byName = func() map[string]*Param {
	names := make(map[string]*Param, len(rows))
	for _, p := range rows {
		names[p.Name] = p
	}
	return names
}()
