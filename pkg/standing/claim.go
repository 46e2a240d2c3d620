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

// Claim makes the cluster that client reaches this fleet's before anything is done to it, or refuses: it is another's, or its Flux
// follows something else. have is what is known of the fleet repo by then.
func Claim(ctx context.Context, s *session.Session, client *kube.Client, have following.View) error {
	for {
		there, err := ownership.ReadClaim(ctx, client)
		if err != nil {
			return err
		}
		if err := s.CheckClaim(there); err != nil {
			return err
		}
		if err := following.Check(ctx, s, client, there, have); err != nil {
			return err
		}
		if there != nil {
			return nil
		}
		err = s.Claim().Create(ctx, client)
		if !apierrors.IsAlreadyExists(err) {
			return diag.Wrap("note in the cluster which fleet it belongs to", err, "")
		}
	}
}
