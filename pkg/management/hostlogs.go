package management

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
)

// HostLogs names the programs of a host that have a log.
func HostLogs(ctx context.Context, t *Target) ([]string, error) {
	l, err := t.logger(ctx)
	if err != nil {
		return nil, err
	}
	return l.Logs()
}

// HostLog writes the last lines of one program's log. name is one of HostLogs, with or without the namespace.
func HostLog(ctx context.Context, t *Target, name string, lines int, w io.Writer) error {
	l, err := t.logger(ctx)
	if err != nil {
		return err
	}
	names, err := l.Logs()
	if err != nil {
		return err
	}
	name, err = fullLogName(name, names)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		hint := "there are none yet"
		if near := diag.Nearest(name, names); near != "" {
			hint = "did you mean " + near + "? `fleetctl host logs` lists them"
		} else if len(names) > 0 {
			hint = "`fleetctl host logs` lists them"
		}
		return diag.Usage(hint, "no program %s has a log", name)
	}
	f, err := l.Log(name)
	if err != nil {
		return diag.Wrap("read the log of "+name, err, "")
	}
	_, err = copyLastLines(w, f, lines)
	return errors.Join(err, f.Close())
}

// fullLogName returns the entry of names for a name without the namespace, or without the common suffix of managers. It fails if several
// entries fit.
func fullLogName(short string, names []string) (string, error) {
	if slices.Contains(names, short) {
		return short, nil
	}
	const manager, controller = "-controller-manager", "-controller"
	for _, wanted := range []string{short, short + controller, short + manager} {
		var meant []string
		for _, name := range names {
			if namespace, deployment, ok := strings.Cut(name, "/"); ok && (deployment == wanted || wanted == short && namespace == short) {
				meant = append(meant, name)
			}
		}
		switch len(meant) {
		case 0:
			continue
		case 1:
			return meant[0], nil
		}
		return "", diag.Usage("give one of them", "several programs are called %s: %s", short, strings.Join(meant, ", "))
	}
	return short, nil
}

func (t *Target) logger(ctx context.Context) (host.Logger, error) {
	h, err := t.Host(ctx)
	if err != nil {
		return nil, err
	}
	l, ok := h.(host.Logger)
	if !ok {
		return nil, diag.Usage("use kubectl logs with the kubeconfig of `fleetctl kubeconfig`",
			"the programs of management cluster %s run in pods: their logs are in the cluster", t.Name)
	}
	return l, nil
}

// copyLastLines copies the last lines of a file, found from its end: logs are long.
func copyLastLines(w io.Writer, f *os.File, lines int) (int64, error) {
	const block = 32 << 10
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	from, buffer := end, make([]byte, block)
	for found := 0; from > 0; {
		size := min(from, block)
		if _, err := f.ReadAt(buffer[:size], from-size); err != nil {
			return 0, err
		}
		for i := size - 1; i >= 0; i-- {
			if buffer[i] != '\n' || from-size+i == end-1 {
				continue
			}
			if found++; found == lines {
				from = from - size + i + 1
				return io.Copy(w, io.NewSectionReader(f, from, end-from))
			}
		}
		from -= size
	}
	return io.Copy(w, io.NewSectionReader(f, 0, end))
}
