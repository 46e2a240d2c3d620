// Package programs finds the programs of a control plane, Kubernetes' and etcd's: in a folder of this machine, or where their projects
// release them.
package programs

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Wanted is a program to find.
type Wanted struct {
	// Name of the program, and the version that it has to have ("v1.36.3"); "" takes any.
	Name, Version string
}

// Found is a program that was found.
type Found struct {
	Name string
	// Version that the program prints. It is "" if the program does not run here because it is for another system.
	Version string
	// File holds it.
	File string
}

// etcd is the program whose releases are etcd's own. All others are Kubernetes'.
const etcd = "etcd"

const folderHint = "give --programs a folder that holds etcd, kube-apiserver and kube-controller-manager for Linux on the architecture " +
	"of the bundle"

// Folder finds programs in a folder. Its error lists all problems: a program that is missing, that is not for Linux on that architecture
// ("amd64", "arm64"), or that prints another version. Folder asks a program for its version if this machine can run it.
func Folder(ctx context.Context, dir, architecture string, wanted []Wanted) ([]Found, error) {
	var found []Found
	var problems []error
	for _, w := range wanted {
		f, err := inFolder(ctx, dir, architecture, w)
		found, problems = append(found, f), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, diag.Wrap("take programs from "+dir, err, folderHint)
	}
	return found, nil
}

func inFolder(ctx context.Context, dir, architecture string, w Wanted) (Found, error) {
	f := Found{Name: w.Name, File: filepath.Join(dir, w.Name)}
	info, err := os.Stat(f.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, fmt.Errorf("there is no %s", w.Name)
	case err != nil:
		return f, err
	case !info.Mode().IsRegular():
		return f, fmt.Errorf("%s is not a file", w.Name)
	}
	if err := checkArchitecture(f.File, architecture); err != nil {
		return f, fmt.Errorf("%s %w", w.Name, err)
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != architecture {
		return f, nil
	}
	if f.Version, err = versionOf(ctx, f.File); err != nil {
		return f, fmt.Errorf("%s: %w", w.Name, err)
	}
	if w.Version != "" && f.Version != w.Version {
		return f, fmt.Errorf("%s has version %s instead of %s", w.Name, f.Version, w.Version)
	}
	return f, nil
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func checkArchitecture(file, architecture string) error {
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("is no program for Linux: %w", err)
	}
	defer func() { _ = program.Close() }() // it was only read
	if program.Machine != machines[architecture] {
		return fmt.Errorf("is for another architecture than %s: %s", architecture, program.Machine)
	}
	return nil
}

// said finds the version in what `etcd --version` and `kube-apiserver --version` print.
var said = regexp.MustCompile(`(?m)^(?:etcd Version: |Kubernetes v)(\d+\.\d+\.\d+\S*)`)

// versionLimit bounds how long a program may take to say its version.
const versionLimit = 20 * time.Second

func versionOf(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, file, "--version")
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("ask it for its version: %w", errors.Join(ctx.Err(), err))
	}
	m := said.FindStringSubmatch(out.String())
	if m == nil {
		first, _, _ := strings.Cut(out.String(), "\n")
		return "", fmt.Errorf("says no version: %.100q", first)
	}
	return "v" + m[1], nil
}
