package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/bmoe/bmoe/core/experts"
	"github.com/bmoe/bmoe/core/llama"
)

// Generate runs the prompt, then makes tokens until a reason to stop. each sees every token as it is made; its error ends
// the generation. The context is emptied first: prompts of one session do not see each other.
//
// A cancelled ctx ends it within a second, with what was made so far and StopInterrupted.
func (s *Session) Generate(ctx context.Context, r Request, each func(Token) error) (Result, error) {
	var result Result
	if s.abandoned {
		return result, errors.New("the session was interrupted and can't be used again")
	}
	tokens, err := s.model.Tokenize(r.Prompt)
	if err != nil {
		return result, inputError{err}
	}
	if len(tokens) == 0 {
		return result, input("the prompt is empty")
	}
	if n := s.ctx.Length(); len(tokens) >= n {
		return result, input("the prompt has %d tokens and the context %d; ask for a longer one with -c", len(tokens), n)
	}
	s.Reset()
	sampler := s.lib.NewSampler(llama.SamplerOptions(r.Sampling.chain()))
	defer func() {
		if !s.abandoned {
			sampler.Free()
		}
	}()

	start, before := time.Now(), s.costs()
	err = s.prefill(ctx, tokens, r.Progress)
	result.Prefill = Phase{Tokens: len(tokens), Elapsed: time.Since(start), Cost: s.costs().less(before)}
	defer func() { s.account(result) }()
	if err != nil {
		result.Prefill.Tokens = 0
		return s.stopped(result, err)
	}
	begin := time.Now()
	decodeBefore := s.costs()
	last, lastCosts := start, before
	var text utf8Stream
	for i := 0; ; i++ {
		if i >= r.Max {
			result.Stop = StopLimit
			break
		}
		id := sampler.Next(s.ctx)
		if s.model.IsEnd(id) && !r.IgnoreEOS {
			result.Stop = StopEnd
			break
		}
		now, costs := time.Now(), s.costs()
		t := Token{Index: i, ID: id, Text: text.add(s.model.Piece(id)), Elapsed: now.Sub(last), Cost: costs.less(lastCosts)}
		last, lastCosts = now, costs
		if err := each(t); err != nil {
			return result, err
		}
		if i+1 >= r.Max {
			result.Stop = StopLimit
			break
		}
		if s.used >= s.ctx.Length() {
			result.Stop = StopContext
			break
		}
		if err := s.decode(ctx, []int32{id}); err != nil {
			return s.stopped(result, err)
		}
		result.Decode = Phase{Tokens: i + 1, Elapsed: time.Since(begin), Cost: s.costs().less(decodeBefore)}
	}
	if rest := text.rest(); rest != "" {
		if err := each(Token{Index: -1, Text: rest}); err != nil {
			return result, err
		}
	}
	return result, nil
}

// stopped tells an interruption from a failure.
func (s *Session) stopped(r Result, err error) (Result, error) {
	if errors.Is(err, llama.ErrAborted) {
		r.Stop = StopInterrupted
		return r, nil
	}
	return r, err
}

// prefill runs the prompt, and tells how far it is: which graph, and in it which layer the experts are at.
func (s *Session) prefill(ctx context.Context, tokens []int32, tell func(fraction float64)) error {
	if tell == nil {
		return s.decode(ctx, tokens)
	}
	if s.store != nil {
		s.store.Watch(func(layer, layers int) {
			graph := min(len(tokens)-s.used, s.cfg.Ubatch)
			tell((float64(s.used) + float64(graph)*float64(layer)/float64(layers)) / float64(len(tokens)))
		})
		defer s.store.Watch(nil)
	}
	for at := 0; at < len(tokens); at += s.cfg.Ubatch {
		tell(float64(at) / float64(len(tokens)))
		if err := s.decode(ctx, tokens[at:min(at+s.cfg.Ubatch, len(tokens))]); err != nil {
			return err
		}
	}
	tell(1)
	return nil
}

// Reset forgets every token of the context, and a read that failed.
func (s *Session) Reset() {
	if s.store != nil && s.store.Err() != nil {
		s.store.Recover()
	}
	s.ctx.Clear()
	s.used = 0
}

// Eval runs tokens after those before and gives the logits of the last, one per token of the vocabulary. They are valid
// until the next call.
func (s *Session) Eval(ctx context.Context, tokens []int32) ([]float32, error) {
	if err := s.decode(ctx, tokens); err != nil {
		return nil, err
	}
	return s.ctx.Logits(), nil
}

// Tokenize is the prompt's tokens.
func (s *Session) Tokenize(prompt string) ([]int32, error) { return s.model.Tokenize(prompt) }

// Store is the expert cache, nil in a plain session.
func (s *Session) Store() *experts.Store { return s.store }

// decode runs the tokens in graphs of at most a ubatch. When ctx ends, the graph under way is asked to end, and left
// behind if it does not.
func (s *Session) decode(ctx context.Context, tokens []int32) error {
	for len(tokens) > 0 {
		if ctx.Err() != nil {
			return llama.ErrAborted
		}
		n := min(len(tokens), s.cfg.Ubatch)
		if err := s.step(ctx, tokens[:n]); err != nil {
			if s.store != nil && s.store.Err() != nil {
				return fmt.Errorf("read experts: %w", s.store.Err())
			}
			return err
		}
		s.used += n
		tokens = tokens[n:]
	}
	return nil
}

func (s *Session) step(ctx context.Context, tokens []int32) error {
	done := make(chan error, 1)
	go func() { done <- s.ctx.Decode(tokens) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.ctx.Abort()
	if s.store != nil {
		s.store.Abort()
	}
	select {
	case <-done:
	case <-time.After(grace):
		s.abandoned = true
	}
	return llama.ErrAborted
}

func (p Sampling) chain() llama.SamplerOptions {
	return llama.SamplerOptions{TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, Temperature: p.Temperature, Seed: p.Seed}
}

func (s *Session) costs() Cost {
	if s.store == nil || s.abandoned {
		return Cost{}
	}
	st := s.store.Stats()
	return Cost{Hits: st.Hits, Misses: st.Misses, ReadBytes: st.ReadBytes, Wait: st.Wait}
}

func (c Cost) less(o Cost) Cost {
	return Cost{c.Hits - o.Hits, c.Misses - o.Misses, c.ReadBytes - o.ReadBytes, c.Wait - o.Wait}
}

func (c Cost) plus(o Cost) Cost {
	return Cost{c.Hits + o.Hits, c.Misses + o.Misses, c.ReadBytes + o.ReadBytes, c.Wait + o.Wait}
}

// utf8Stream gives text out character by character: a token may end in the middle of one.
type utf8Stream struct{ held []byte }

func (u *utf8Stream) add(piece []byte) string {
	u.held = append(u.held, piece...)
	n := len(u.held)
	for i := 1; i <= min(3, n); i++ {
		if c := u.held[n-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(u.held[n-i:]) {
				n -= i
			}
			break
		}
	}
	out := string(u.held[:n])
	u.held = append(u.held[:0], u.held[n:]...)
	return out
}

func (u *utf8Stream) rest() string {
	out := string(u.held)
	u.held = nil
	return out
}
