package management

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
)

// HostExecOptions are the command to run, and the host to make for it.
type HostExecOptions struct {
	// Command and its arguments.
	Command []string
	// Bundle is the path of an offline bundle; empty: images come from registries.
	Bundle string
	// KubernetesVersion ("v1.36.3"); empty leaves it to the host.
	KubernetesVersion string
	// Stdin, Stdout and Stderr are the command's.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// execDir is the folder of the state folder with a host for each command that runs on one of its own.
const execDir = "exec"

// patience is how long a command that is asked to end may take for it.
const patience = 30 * time.Second

// HostExec runs a command with a management cluster of its own, an embedded host that ends with it: KUBECONFIG in its environment leads
// there. The error of a command that fails carries its exit code.
func HostExec(ctx context.Context, deps Deps, o HostExecOptions) (err error) {
	if o.KubernetesVersion != "" {
		if problem, hint := v1alpha1.VersionProblem(o.KubernetesVersion); problem != "" {
			return diag.Usage(hint, "--kubernetes-version: %s", problem)
		}
	}
	program, err := exec.LookPath(o.Command[0])
	if err != nil {
		return diag.Wrap("run "+o.Command[0], err, "name a program that is on PATH, or its path")
	}
	if err := sweepExec(ctx, deps); err != nil {
		return err
	}
	all := filepath.Join(deps.Store.Dir, execDir)
	if err := os.MkdirAll(all, 0o700); err != nil {
		return diag.Wrap("make a folder for the host", err, "point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write")
	}
	dir, err := os.MkdirTemp(all, "")
	if err != nil {
		return diag.Wrap("make a folder for the host", err, "point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h, err := hosts.NewEphemeral("exec", filepath.Join(dir, "host"), hosts.ImageDir(deps.CacheDir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deleteExec(ctx, h)) }()
	if err := makeExec(ctx, deps, h, o); err != nil {
		return err
	}
	kubeconfig, err := h.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, KubeconfigFile)
	if err := atomicfile.WriteVolatile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, o.Command[1:]...) //nolint:gosec // the user's own command
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	err = h.RunBeside(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return &diag.Error{Op: o.Command[0], Err: exit, Code: max(exit.ExitCode(), 1)}
	}
	return err
}

// makeExec makes the host, with what a bundle brings.
func makeExec(ctx context.Context, deps Deps, h host.Host, o HostExecOptions) error {
	opts := host.CreateOptions{KubernetesVersion: o.KubernetesVersion}
	if o.Bundle != "" {
		b, err := bundle.Open(ctx, o.Bundle, bundle.WithCache(filepath.Join(deps.CacheDir, "bundles")))
		if err != nil {
			return err
		}
		defer func() { _ = b.Close() }() // it was only read
		opts.NodeImage = b.Archive()
		opts.Images = func(context.Context) (host.ImageArchive, error) { return opts.NodeImage, nil }
	}
	step := deps.Report.Start("start a management cluster for the command")
	opts.Detail = step.Detail
	if err := h.Create(ctx, opts); err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return nil
}

// deleteExec ends a host also where the command was interrupted.
func deleteExec(ctx context.Context, h host.Host) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	left, err := h.Delete(ctx)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("delete the host: these remain: %v", left))
	}
	return err
}

// sweepExec removes the folders that killed commands left; their hosts have ended with them.
func sweepExec(ctx context.Context, deps Deps) error {
	all := filepath.Join(deps.Store.Dir, execDir)
	entries, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(all, e.Name())
		h, err := hosts.NewEphemeral("exec", filepath.Join(dir, "host"), "")
		if err != nil {
			return err
		}
		if st, err := h.State(ctx); err != nil || st != host.StateBroken {
			continue // it runs, or somebody is about to start it
		}
		if err := errors.Join(deleteExec(ctx, h), os.RemoveAll(dir)); err != nil {
			return err
		}
	}
	return nil
}
