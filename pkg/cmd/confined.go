package cmd

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The variables that set other limits to what renders a fleet repo.
const (
	memoryVariable = "FLEETCTL_RENDER_MEMORY"
	timeVariable   = "FLEETCTL_RENDER_TIME"
)

// leastMemory is what the smallest fleet takes.
const leastMemory = 256 << 20

// confined is a context in which all that reads what a fleet repo says does so in a process of its own.
func confined(ctx context.Context) (context.Context, error) {
	limits := confine.DefaultLimits
	if value := os.Getenv(memoryVariable); value != "" {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Value() < leastMemory {
			return nil, diag.Usage("give it as 8Gi, and not less than 256Mi", "%s: %q is no amount of memory", memoryVariable, value)
		}
		limits.Memory = q.Value()
	}
	if value := os.Getenv(timeVariable); value != "" {
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second {
			return nil, diag.Usage("give it as 5m, and not less than 1s", "%s: %q is no time", timeVariable, value)
		}
		limits.Time = d
	}
	p, err := confine.Self(limits)
	if err != nil {
		return nil, err
	}
	return confine.With(ctx, p), nil
}
