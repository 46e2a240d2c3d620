package management

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// tellTime is how long Flux has to hear of a commit; it looks by itself soon after.
const tellTime = 10 * time.Second

// ServeRepo serves the fleet repo of the management cluster whose state folder dir is in, until ctx ends, and tells its Flux of each commit
// and tag. It is the process that init starts in the background: it says one line to hello when it listens, and the rest to log.
func ServeRepo(ctx context.Context, dir string, hello, log io.Writer) error {
	kubeconfig := filepath.Join(filepath.Dir(dir), KubeconfigFile)
	return gitserve.Run(ctx, dir, hello, log, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, tellTime)
		defer cancel()
		raw, err := os.ReadFile(kubeconfig) // each time: a pivot replaces it
		if err != nil {
			return err
		}
		client, err := kube.New(raw, kube.Options{})
		if err != nil {
			return err
		}
		return flux.NewSystem(client).ReconcileSources(ctx)
	})
}
