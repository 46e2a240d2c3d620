package host

import (
	"context"
	"os"
	"os/exec"
)

// Abilities that only some kinds of hosts have, in addition to Host. Each kind asserts its abilities beside its type. A caller uses a type
// assertion. If the host lacks the ability, the caller tells the user what to do instead. All methods may be called in any state of the
// host.
type (
	// Stopper is a host that can be stopped with all its data.
	Stopper interface {
		// Stop ends all processes of the host and returns when they have ended. It is no error if none runs.
		Stop(ctx context.Context) error
	}

	// Logger is a host whose programs have logs on this machine.
	Logger interface {
		// Logs names the programs that have a log, sorted.
		Logs() ([]string, error)
		// Log opens the log of a program that Logs names. The file's size is the log's present end. For any other name the error is
		// fs.ErrNotExist.
		Log(name string) (*os.File, error)
	}

	// Complainer is a host that can name its own faults, even while its API server does not answer.
	Complainer interface {
		// Trouble returns what keeps a running host from working. It returns nil if it finds nothing, or if the host does not run.
		Trouble() error
	}

	// PortOwner is a host whose programs listen on ports of this machine.
	PortOwner interface {
		// Listens names the program of the host that listens on a TCP port; "" if none does.
		Listens(port int) (program string, err error)
	}

	// Rememberer is a host that knows its Deployments even while it is stopped.
	Rememberer interface {
		// Deployments names, as NAMESPACE/NAME, the Deployments that the host runs, or that it ran when it was stopped.
		Deployments() ([]string, error)
	}

	// Exposed is a host whose programs are processes of this machine, so that the machine's other users may reach them.
	Exposed interface {
		// Neighbours tells which programs other users of the machine reach without a credential.
		Neighbours(ctx context.Context) (*Neighbours, error)
	}

	// OnEngine is a host whose nodes are containers of this machine's engine.
	OnEngine interface {
		// EngineSocket is the path of the engine's socket, as the engine can mount it into a node.
		EngineSocket(ctx context.Context) (string, error)
	}

	// Marked is a host that carries the identity of its fleet, which can be read even while the host does not run.
	Marked interface {
		// Fleet is the identity of the fleet that CreateOptions named; "" if it is not known.
		Fleet(ctx context.Context) (string, error)
		// Stranger is an error if another fleetctl has made a host of the same name. The error names that fleetctl. It is nil if this fleetctl or
		// another program made the host, or if there is no host.
		Stranger(ctx context.Context) error
	}

	// Guarded is a host that fleetctl has not made, so its user may lack the rights to install into it.
	Guarded interface {
		// CheckAccess is an error if the user lacks these rights.
		CheckAccess(ctx context.Context) error
	}

	// Companion is a host that lives as long as this process, and runs commands beside it.
	Companion interface {
		Host
		// RunBeside runs cmd to its end, on this process's terminal. The command ends with this process, as the host does.
		RunBeside(cmd *exec.Cmd) error
	}
)
