package standing

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Check returns the error that Claim would return, and changes nothing. It also returns who owns the cluster; nil if
// nobody does.
func Check(ctx context.Context, s *session.Session, client *kube.Client, have following.View) (*ownership.Claim, error) {
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := s.CheckClaim(there); err != nil {
		return nil, err
	}
	found, err := following.Find(ctx, s, client, there, have)
	if err != nil {
		return there, err
	}
	return there, found.Check(ctx)
}

// Claim notes in the cluster that it belongs to this fleet, before anything else is done to it. It returns an error if
// the cluster belongs to another fleet, or if its Flux follows something else. have is what is known of the fleet repo
// by then.
func Claim(ctx context.Context, s *session.Session, client *kube.Client, have following.View) error {
	for {
		there, err := Check(ctx, s, client, have)
		if err != nil || there != nil {
			return err
		}
		err = s.Claim().Create(ctx, client)
		if !apierrors.IsAlreadyExists(err) {
			return diag.Wrap("note in the cluster which fleet it belongs to", err, "")
		}
	}
}
