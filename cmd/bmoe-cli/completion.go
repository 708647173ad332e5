package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmoe/bmoe/core/params"
)

// suggest tells the shells' completion what may follow each flag: a model, a file, one of a few words, or nothing known.
func suggest(c *cobra.Command) {
	for _, p := range params.All() {
		f := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			switch {
			case p.Name == "model":
				return []string{"gguf"}, cobra.ShellCompDirectiveFilterFileExt
			case p.Kind == params.Path:
				return nil, cobra.ShellCompDirectiveDefault
			}
			return p.Choices, cobra.ShellCompDirectiveNoFileComp
		}
		if err := c.RegisterFlagCompletionFunc(p.Name, f); err != nil {
			panic(err) // the table has a name twice, or the flags lack one
		}
		// The shells show a line for each flag.
		first, _, _ := strings.Cut(p.Help, ". ")
		c.Flags().Lookup(p.Name).Usage = strings.TrimSuffix(first, ".")
	}
}

// complete prints the script for a shell. The script asks this program, so it stays right when flags change.
func complete(c *cobra.Command, w io.Writer, shell string) error {
	switch shell {
	case "bash":
		return c.GenBashCompletionV2(w, true)
	case "zsh":
		return c.GenZshCompletion(w)
	case "fish":
		return c.GenFishCompletion(w, true)
	case "powershell":
		return c.GenPowerShellCompletionWithDesc(w)
	}
	return fmt.Errorf("no completion for %s", shell)
}
