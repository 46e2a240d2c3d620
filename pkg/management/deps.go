package management

import (
	"io"

	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/variables"
)

// Deps is what a workflow works with. The command line wires it once.
type Deps struct {
	Report progress.Reporter
	Store  state.Store
	// CacheDir holds what can be fetched or unpacked again.
	CacheDir string
	// Executable is this program: it serves a fleet repo without a remote in the background.
	Executable string
	// LookupEnv reads the environment (os.LookupEnv).
	LookupEnv func(string) (string, bool)
	// Environ is the environment of commands that fleet.yaml names for variables, as NAME=value; nil: that of this process.
	Environ []string
	// Stdin is the piped standard input; nil for a terminal.
	Stdin io.Reader
}

// Inputs are where values of variables come from, as far as they are in no file.
func (d Deps) Inputs() variables.Inputs {
	return variables.Inputs{LookupEnv: d.LookupEnv, Environ: d.Environ, Stdin: d.Stdin}
}
