// Command offline builds an offline bundle (controllers' images and manifests, a kind node image) from Go modules alone:
// for CI, for machines that reach no container registry, and for trying fleetctl out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/build"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/report"
)

const usage = `usage: offline build [flags]

Builds an offline bundle from Go modules: no container registry is asked for anything.
What was built before is kept in the cache and not built again.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case interrupted:
		fmt.Fprintln(os.Stderr, "offline: interrupted; run it again to go on from the last finished step")
		os.Exit(130)
	case errors.As(err, new(usageError)):
		fmt.Fprintf(os.Stderr, "offline: %v\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "offline: %v\n", err)
		os.Exit(1)
	}
}

// usageError is a mistake in the arguments.
type usageError struct{ error }

func run(ctx context.Context, args []string, stderr io.Writer) error {
	options, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return build.Build(ctx, options, report.New(stderr))
}

func parse(args []string, stderr io.Writer) (build.Options, error) {
	var o build.Options
	var only, clouds string
	flags := flag.NewFlagSet("offline", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.Source, "source", ".", "`folder` of scripts/offline in fleetctl's source")
	flags.StringVar(&o.Cache, "cache", defaultCache(), "`folder` that keeps everything that was built")
	flags.StringVar(&o.Out, "out", "", "`folder` of the bundle (default: bundle in the cache)")
	flags.StringVar(&only, "only", "", "build only these `parts`, separated by commas: "+strings.Join(build.Parts, ", ")+
		" (default "+strings.Join(build.DefaultParts, ",")+")")
	flags.StringVar(&clouds, "clouds", "",
		"the `clouds` of the part providers, separated by commas (default "+strings.Join(recipe.Clouds, ",")+")")
	flags.BoolVar(&o.ImageAutomation, "image-automation", false, "include Flux's two image controllers")
	flags.BoolVar(&o.CompileOnly, "compile-only", false,
		"of the part providers compile the clouds' programs into Go's own cache, while other builds go on")
	flags.BoolVar(&o.NoLoad, "no-load", false, "do not load the node images into the container engine")
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if args[0] != "build" {
			return o, usageError{fmt.Errorf("no such command: %s; there is only: build", args[0])}
		}
		args = args[1:]
	} else if len(args) == 0 {
		flags.Usage()
		return o, usageError{errors.New("no command given; there is only: build")}
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usageError{err}
	}
	if flags.NArg() > 0 {
		return o, usageError{fmt.Errorf("unexpected argument %s", flags.Arg(0))}
	}
	if only != "" {
		o.Only = strings.Split(only, ",")
	}
	if clouds != "" {
		o.Clouds = strings.Split(clouds, ",")
	}
	return o, nil
}

// defaultCache is one folder for everything that fleetctl's scripts keep, so that one command empties it.
func defaultCache() string {
	root := os.Getenv("FLEETCTL_CACHE_DIR")
	if root == "" {
		base := os.Getenv("XDG_CACHE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				home = os.TempDir()
			}
			base = filepath.Join(home, ".cache")
		}
		root = filepath.Join(base, "fleetctl")
	}
	return filepath.Join(root, "offline")
}
