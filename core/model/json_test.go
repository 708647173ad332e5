package model_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/gguf/gguftest"
	"github.com/bmoe/bmoe/core/model"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]sample{
		"experts":    {layers: layers{dense, split(gguf.Q6_K), fused}},
		"per layer":  {figures: map[string]any{"expert_used_count": []int32{0, 2}}, layers: layers{dense, ungated}},
		"prediction": {figures: map[string]any{"nextn_predict_layers": uint32(1)}, layers: layers{ungated, prediction}},
		"dense":      {figures: map[string]any{"expert_count": nil, "expert_used_count": nil}, layers: layers{dense}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := s.profile(t)
			path := filepath.Join(t.TempDir(), "profile.json")
			require.NoError(t, p.Save(path))
			back, err := model.Load(path)
			require.NoError(t, err)
			assert.Equal(t, p, back)

			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Contains(t, string(text), "\"version\": 1,")
			assert.NotContains(t, string(text), filepath.ToSlash(t.TempDir()))
			assert.NotContains(t, string(text), "/", "a profile holds no path")
			for _, tensor := range p.Tensors {
				assert.Contains(t, string(text), "\n    {\"name\":\""+tensor.Name+"\",", "one tensor a line")
			}

			require.NoError(t, p.Save(path), "an older profile is replaced")
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, left, 1, "and nothing else is left")
		})
	}
}

func text(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, sample{
		figures: map[string]any{"nextn_predict_layers": uint32(1), "expert_used_count": []int32{1, 2, 2}},
		general: []gguftest.Pair{gguftest.KV("general.name", "Sample")},
		layers:  layers{dense, ungated, prediction},
	}.profile(t).Encode(&b))
	return b.String()
}

// Each case changes one thing in a good profile and gets one line that says what is wrong with it.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good := text(t)
	for name, c := range map[string]struct{ old, new, says string }{
		"nothing":          {"*", "", "not a model profile: unexpected end of JSON input"},
		"no JSON":          {"*", "hello", "not a model profile: invalid character 'h'"},
		"a list":           {"*", "[]", "not a model profile"},
		"other JSON":       {"*", "{}", `not a model profile: it has no "profile": "model"`},
		"a machine":        {`"profile": "model"`, `"profile": "machine"`, "not a model profile"},
		"more after it":    {"\n}\n", "\n}\n{}", "not a model profile"},
		"cut":              {"]\n}\n", "", "not a model profile: unexpected end"},
		"another version":  {`"version": 1`, `"version": 2`, "a model profile of version 2; this program reads version 1"},
		"no version":       {`"version": 1,`, "", "a model profile of version 0"},
		"unknown field":    {`"context"`, `"kontext"`, `malformed model profile: json: unknown field "kontext"`},
		"wrong type":       {`"context": 4096`, `"context": "4096"`, "context is a JSON string, which it cannot be"},
		"unknown type":     {`"type":"q4_K"`, `"type":"q4_L"`, `malformed model profile: no tensor type is called "q4_L"`},
		"no type":          {`"type":"q4_K",`, ``, "is not within"},
		"architecture":     {`"qwen3moe"`, `"../x"`, `contradictory model profile: no architecture can be called "../x"`},
		"a path for name":  {`"Sample"`, `"/home/x/Sample"`, "is a path"},
		"a path for shard": {`"sample.gguf"`, `"/home/x/sample.gguf"`, "is not a plain file name"},
		"no shard name":    {`"sample.gguf"`, `""`, "is not a plain file name"},
		"negative shard":   {`"bytes": `, `"bytes": -`, "has a size of -"},
		"experts unused":   {`"expert_count": 8`, `"expert_count": 0`, "a number of experts used of 2; possible are 0 to 0"},
		"other experts":    {`"expert_count": 8`, `"expert_count": 9`, "holds 8 experts of a layer's 9"},
		"none used":        {`"expert_used": 2`, `"expert_used": 0`, "8 experts, but 0 are used"},
		"other width":      {`"expert_used": 2`, `"expert_used": 3`, "routing widths per layer from 1 to 2, but 3 as the largest"},
		"widths":           {`"expert_used_per_layer": [`, `"expert_used_per_layer": [1,`, "routing widths for 3 layers of 2"},
		"no layers":        {`"layers": 2`, `"layers": 0`, "a number of layers of 0"},
		"prediction":       {`"mtp_layers": 1`, `"mtp_layers": 0`, "bytes in 0 multi-token-prediction layers"},
		"more prediction":  {`"mtp_bytes": `, `"mtp_bytes": 99`, "bytes of multi-token prediction beside"},
		"no tensor name":   {`"name":"token_embd.weight"`, `"name":""`, "a tensor without a name"},
		"tensor twice":     {`"name":"output.weight"`, `"name":"output_norm.weight"`, `tensor "output_norm.weight" is listed twice`},
		"other layer":      {`"blk.1.attn_norm.weight"`, `"blk.2.attn_norm.weight"`, `"blk.2.attn_norm.weight" is of a layer`},
		"other shard":      {`"shard":0`, `"shard":1`, "is in file 2 of 1"},
		"negative offset":  {`"offset":`, `"offset":-`, "is not within"},
		"past the end":     {`"offset":`, `"offset":99999999999`, "is not within"},
		"dimensions":       {`"dims":[256,100,1,1]`, `"dims":[255,100,1,1]`, "rows of 255 elements"},
		"overlap":          {`"dims":[256,100,1,1]`, `"dims":[256,101,1,1]`, `tensors "token_embd.weight" and "output_norm.weight" overlap`},
		"no down":          {`blk.1.ffn_down_exps.weight`, `blk.1.ffn_down.weight`, "layer 1 has an incomplete set of expert tensors"},
		"no experts":       {`_exps.weight`, `.weight`, "8 experts, but no tensor that holds them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := c.new
			if c.old != "*" {
				require.Contains(t, good, c.old)
				bad = strings.ReplaceAll(good, c.old, c.new)
			}
			path := filepath.Join(t.TempDir(), "profile.json")
			require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
			_, err := model.Load(path)
			require.Error(t, err)
			assert.ErrorContains(t, err, path+": ")
			assert.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *model.Profile)
		says   string
	}{
		"no shards":    {func(p *model.Profile) { p.Shards = nil }, "no file that the model is in"},
		"shard twice":  {func(p *model.Profile) { p.Shards = append(p.Shards, p.Shards[0]) }, "is listed twice"},
		"huge shards":  {func(p *model.Profile) { p.Shards = append(p.Shards, model.Shard{Name: "b", Bytes: 1<<63 - 1}) }, `file "b" has a size of`},
		"no tensors":   {func(p *model.Profile) { p.Tensors = nil }, "no tensors"},
		"unknown type": {func(p *model.Profile) { p.Tensors[0].Type = 4 }, "unknown or removed tensor type 4"},
	} {
		p, err := model.Decode(strings.NewReader(text(t)))
		require.NoError(t, err)
		c.change(p)
		_, err = model.New(*p)
		assert.ErrorContains(t, err, c.says, name)
	}
}

func TestNewLeavesItsArgument(t *testing.T) {
	t.Parallel()
	p := sample{layers: layers{ungated}}.profile(t)
	given := *p
	given.Tensors = []model.Tensor{{Name: "blk.0.ffn_up_exps.weight", Type: gguf.F16, Dims: [4]int64{2, 2, experts, 1}}, {Name: "blk.0.ffn_down_exps.weight", Type: gguf.F16, Dims: [4]int64{2, 2, experts, 1}, Offset: 64}}
	made, err := model.New(given)
	require.NoError(t, err)
	assert.Equal(t, model.NotExpert, given.Tensors[0].Kind)
	assert.Equal(t, model.Up, made.Tensors[0].Kind)
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errors.New("no luck") }
func (failing) Write([]byte) (int, error) { return 0, errors.New("no luck") }

// endless is JSON that never gets anywhere.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte(" "), len(p)))
	return len(p), nil
}

func TestFailures(t *testing.T) {
	t.Parallel()
	p := sample{layers: layers{ungated}}.profile(t)
	_, err := model.Decode(failing{})
	assert.EqualError(t, err, "no luck")
	_, err = model.Decode(endless{})
	assert.EqualError(t, err, "larger than the 64 MiB that a model profile may have")
	assert.EqualError(t, p.Encode(failing{}), "no luck")

	dir := t.TempDir()
	_, err = model.Load(filepath.Join(dir, "none.json"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = model.Load(dir)
	assert.ErrorContains(t, err, dir+": ")
	assert.ErrorIs(t, p.Save(filepath.Join(dir, "none", "p.json")), os.ErrNotExist)
	assert.ErrorContains(t, p.Save(dir), dir+": cannot be written: ")
	assert.NoError(t, p.Save(os.DevNull))

	// A profile that cannot be written leaves no part of itself.
	p.Tensors[0].Type = 4
	err = p.Save(filepath.Join(dir, "p.json"))
	assert.ErrorContains(t, err, filepath.Join(dir, "p.json")+": cannot be written: ")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"profile":"model","version":1,"name":"","architecture":"a","context":1,"embedding":1,"vocab":1,"layers":1,"expert_count":2,"expert_used":1,` +
		`"mtp_layers":0,"mtp_bytes":0,"shards":[{"name":"a.gguf","bytes":4096}],"tensors":[` +
		`{"name":"blk.0.ffn_up_exps.weight","type":"f16","dims":[2,2,2,1],"shard":0,"offset":0},` +
		`{"name":"blk.0.ffn_down_exps.weight","type":"f16","dims":[2,2,2,1],"shard":0,"offset":64}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := model.Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		require.LessOrEqual(t, p.TokenCycle(0), p.ExpertBytes())
		require.LessOrEqual(t, p.ExpertBytes()+p.DenseBytes()+p.MTPBytes, p.FileBytes())
		require.LessOrEqual(t, p.LeadingDense(), p.Layers)
		p.LargestLayer()
		p.Widest()
		p.ExpertTypes()
		var b bytes.Buffer
		require.NoError(t, p.Encode(&b))
		back, err := model.Decode(&b)
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}
