package synth

import "fmt"

// The vocabulary: three control tokens, one token per byte, a space, and words that prompts never form (the tokenizer
// joins pairs, and no pair of letters is a token), so that a prompt is one token a byte and generated text is words.
const (
	tokenUnknown = 0
	tokenBegin   = 1
	tokenEnd     = 2
	firstByte    = 3
	tokenSpace   = firstByte + 256
	firstWord    = tokenSpace + 1
	vocabulary   = 512
)

// Token types of the file format (enum llama_token_type).
const (
	kindNormal  = 1
	kindUnknown = 2
	kindControl = 3
	kindByte    = 6
)

// space is how a sentencepiece vocabulary spells a blank.
const space = "\u2581"

// tokens returns the text and type of every token.
func tokens() (texts []string, kinds []int32) {
	add := func(text string, kind int32) { texts, kinds = append(texts, text), append(kinds, kind) }
	add("<unk>", kindUnknown)
	add("<s>", kindControl)
	add("</s>", kindControl)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), kindByte)
	}
	add(space, kindNormal)
	// Words are a consonant, a vowel and a consonant; two in three begin a word.
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	for i := 0; len(texts) < vocabulary; i++ {
		word := string([]byte{consonants[i%14], vowels[i/14%5], consonants[(i*3+i/70*5)%14]})
		if i%3 != 0 {
			word = space + word
		}
		add(word, kindNormal)
	}
	return texts, kinds
}
