package cmd

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The environment variables with the limits of the process that renders a fleet repo.
const (
	memoryVariable = "FLEETCTL_RENDER_MEMORY"
	timeVariable   = "FLEETCTL_RENDER_TIME"
)

// leastMemory is the memory in bytes that the smallest fleet needs.
const leastMemory = 256 << 20

// confined returns a context in which the fleet repo is rendered and validated in a separate process with limits.
func confined(ctx context.Context) (context.Context, error) {
	limits := confine.DefaultLimits
	if value := os.Getenv(memoryVariable); value != "" {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Value() < leastMemory {
			return nil, diag.Usage("give it as 8Gi, and not less than 256Mi", "%s: %q is not an amount of memory", memoryVariable, value)
		}
		limits.Memory = q.Value()
	}
	if value := os.Getenv(timeVariable); value != "" {
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second {
			return nil, diag.Usage("give it as 5m, and not less than 1s", "%s: %q is not a duration", timeVariable, value)
		}
		limits.Time = d
	}
	p, err := confine.Self(limits)
	if err != nil {
		return nil, err
	}
	return confine.With(ctx, p), nil
}
