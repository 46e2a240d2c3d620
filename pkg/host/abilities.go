package host

import (
	"context"
	"os"
	"os/exec"
)

// What only some kinds of hosts can do beside Host. Each kind asserts, beside its type, which of these it can; whoever needs one asks the host
// for it by type, and says what to do instead where it cannot. All of them can be asked of a host in any state.
type (
	// Stopper is a host that can be stopped with all its data.
	Stopper interface {
		// Stop ends all that runs of the host and returns when it is gone. None running is no error.
		Stop(ctx context.Context) error
	}

	// Logger is a host whose programs have logs on this machine.
	Logger interface {
		// Logs names the programs that have a log, sorted.
		Logs() ([]string, error)
		// Log opens the log of a program that Logs names; its size is where it ends now. fs.ErrNotExist for any other.
		Log(name string) (*os.File, error)
	}

	// Complainer is a host that can tell what is wrong with it although its API server may not answer.
	Complainer interface {
		// Trouble is what keeps a host that runs from working; nil if it sees nothing, or does not run.
		Trouble() error
	}

	// PortOwner is a host whose programs listen on ports of this machine.
	PortOwner interface {
		// Listens names the program of the host that listens on a TCP port; "" if none does.
		Listens(port int) (program string, err error)
	}

	// Rememberer is a host that knows what ran on it while it does not run.
	Rememberer interface {
		// Deployments names those that the host runs, or ran when it was stopped, as NAMESPACE/NAME.
		Deployments() ([]string, error)
	}

	// Exposed is a host whose programs are processes of this machine, which may have other users.
	Exposed interface {
		// Neighbours tells what these reach of it.
		Neighbours(ctx context.Context) (*Neighbours, error)
	}

	// OnEngine is a host whose nodes are containers of this machine's engine.
	OnEngine interface {
		// EngineSocket is the path of the engine's socket, as the engine can mount it into a node.
		EngineSocket(ctx context.Context) (string, error)
	}

	// Marked is a host that shows, also while it does not run, what it was made for.
	Marked interface {
		// Fleet is the identity of the fleet in CreateOptions; "" where that is not known.
		Fleet(ctx context.Context) (string, error)
		// Stranger says who else has made what has our name; nil where that was no fleetctl, or nobody has.
		Stranger(ctx context.Context) error
	}

	// Guarded is a host that is there before we are, and may not be ours to install into.
	Guarded interface {
		// CheckAccess is an error where it is not.
		CheckAccess(ctx context.Context) error
	}

	// Companion is a host that lives as long as this process, and runs commands beside it.
	Companion interface {
		Host
		// RunBeside runs a command to its end, with our terminal. The command ends with this process, as the host does.
		RunBeside(cmd *exec.Cmd) error
	}
)
