// Command fleetctl bootstraps fleets of Kubernetes clusters.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/start"
	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func main() {
	start.Done()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cmd.Main(ctx, ui.System(), os.Args[1:]))
}
