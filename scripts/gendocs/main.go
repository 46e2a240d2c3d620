// Command gendocs writes the reference of fleetctl's commands: one Markdown page each. `make docs` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cmd.Root(ui.Streams{})
	root.DisableAutoGenTag = true
	return doc.GenMarkdownTree(root, dir)
}
