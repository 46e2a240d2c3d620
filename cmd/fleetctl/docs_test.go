package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// inDocs finds commands: lines of fenced blocks, with a prompt or without, and what stands between backquotes.
var inDocs = regexp.MustCompile("(?m)^[ $]*(?:[A-Z_]+=\\S+ )*(fleetctl .*)$|`(fleetctl [^`\n]*)`")

// TestCommandsInDocs holds every command that the documentation shows against the real ones: a reader types them.
func TestCommandsInDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "reference" {
			return fs.SkipDir // generated from the commands
		}
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inDocs.FindAllStringSubmatch(strings.ReplaceAll(string(content), "\\\n", ""), -1) {
			for line := range strings.SplitSeq(found[1]+found[2], " && ") {
				if !strings.HasPrefix(line, "fleetctl ") {
					continue
				}
				checked++
				if err := checkCommand(line); err != nil {
					t.Errorf("%s: %q: %v", file, line, err)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("found only %d commands in %q", checked, files)
	}
}

// checkCommand parses a command line without running it.
func checkCommand(line string) error {
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(line)[1:]
	for i, word := range words {
		if word == "…" {
			words = words[:i]
			break
		}
	}
	root := cmd.Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	root.InitDefaultCompletionCmd() // which otherwise is there only once the root runs
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if len(c.Flags().Args()) == 0 {
		return nil // in prose a command may stand without its arguments
	}
	return c.ValidateArgs(c.Flags().Args())
}
