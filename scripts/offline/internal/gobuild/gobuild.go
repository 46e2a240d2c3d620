// Package gobuild builds programs from the modules that pin them.
package gobuild

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/command"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// stripped drops paths of this machine, symbols and debug data: the programs become half as big and the same anywhere.
const stripped = "-s -w"

// static makes programs that run whatever C library is around: in an image that has none, and in a node's Debian that may
// be older than the system that builds.
const static = "CGO_ENABLED=0"

// hostSystem is what this machine runs.
var hostSystem = runtime.GOOS

// Builder builds programs into a cache.
type Builder struct {
	Cache   *cache.Cache
	Modules string // the folder that holds the modules
}

// step is what the cache and the report call a program.
func step(p recipe.Program) string { return "program-" + p.Name }

// Ahead is the processor time that building those of the programs takes which are not in the cache, by step.
func (b Builder) Ahead(programs []recipe.Program) (map[string]time.Duration, error) {
	ahead := map[string]time.Duration{}
	for _, p := range programs {
		there, err := b.Cache.Has(step(p), b.key(p))
		if err != nil {
			return nil, err
		}
		if !there {
			ahead[step(p)] = p.Cost()
		}
	}
	return ahead, nil
}

// Build returns the path of the program, building it if it is not in the cache.
func (b Builder) Build(ctx context.Context, p recipe.Program) (string, error) {
	dir, err := b.Cache.Make(ctx, step(p), b.key(p), func(ctx context.Context, dir string) error {
		if err := b.compile(ctx, p, filepath.Join(dir, p.Name)); err != nil {
			return err
		}
		return b.copyFolders(ctx, p, dir)
	})
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, p.Name)
	for _, name := range append([]string{p.Name}, p.Names...) {
		if err := b.Cache.Link(name, program); err != nil {
			return "", fmt.Errorf("link %s: %w", name, err)
		}
	}
	return program, nil
}

// Compile compiles the program into Go's own cache, from which Build then links it in seconds. It keeps nothing else, and does nothing
// where the program is in the cache.
func (b Builder) Compile(ctx context.Context, p recipe.Program) error {
	there, err := b.Cache.Has(step(p), b.key(p))
	if err != nil || there {
		return err
	}
	return b.compile(ctx, p, os.DevNull)
}

// system is what the program runs on: containers are Linux, whatever this machine is.
func system(p recipe.Program) string {
	if p.Host {
		return hostSystem
	}
	return "linux"
}

// linking is how the program finds the C library: in itself, or on this machine.
func linking(p recipe.Program) string {
	if p.Cgo {
		return "CGO_ENABLED=1"
	}
	return static
}

func (b Builder) key(p recipe.Program) *cache.Key {
	dir := filepath.Join(b.Modules, p.Module)
	key := cache.NewKey("gobuild/1").
		Add("go", runtime.Version(), system(p), runtime.GOARCH).
		Add("package", p.Package).
		Add("flags", linking(p), stripped, p.LDFlags).
		AddFiles(dir, "go.mod", "go.sum")
	if p.Package == "." {
		key.AddFiles(dir, "*.go")
	}
	if p.Tags != "" {
		key.Add("tags", p.Tags)
	}
	if len(p.Folders) > 0 {
		key.Add("folders", p.Folders...)
	}
	return key
}

func (b Builder) compile(ctx context.Context, p recipe.Program, out string) error {
	ldflags := strings.TrimSpace(stripped + " " + p.LDFlags)
	_, err := command.Command{
		Dir: filepath.Join(b.Modules, p.Module),
		// Readonly: a build must not change the versions that go.mod and go.sum pin.
		Env:  []string{linking(p), "GOOS=" + system(p), "GOWORK=off", "GOFLAGS=-mod=readonly"},
		Args: []string{"go", "build", "-trimpath", "-buildvcs=false", "-tags", p.Tags, "-ldflags", ldflags, "-o", out, p.Package},
	}.Run(ctx)
	return err
}

// copyFolders puts what the program reads when it runs beside it: the modules may be gone then.
func (b Builder) copyFolders(ctx context.Context, p recipe.Program, dir string) error {
	if len(p.Folders) == 0 {
		return nil
	}
	source, err := ModuleDir(ctx, filepath.Join(b.Modules, p.Module), p.Package)
	if err != nil {
		return err
	}
	for _, folder := range p.Folders {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(source, folder))); err != nil {
			return err
		}
	}
	return nil
}

// ModuleDir returns the folder of the source of a module that the module in dir requires, downloading it if need be.
func ModuleDir(ctx context.Context, dir, module string) (string, error) {
	out, err := command.Command{
		Dir:  dir,
		Env:  []string{"GOWORK=off", "GOFLAGS=-mod=mod"},
		Args: []string{"go", "mod", "download", "-json", module},
	}.Run(ctx)
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", fmt.Errorf("find the source of %s: %w", module, err)
	}
	if found.Dir == "" {
		return "", fmt.Errorf("find the source of %s: go mod download names no folder", module)
	}
	return found.Dir, nil
}
