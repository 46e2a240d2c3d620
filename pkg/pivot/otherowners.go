package pivot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/census"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// heldClusters are the clusters of a snapshot, or those that another tool has restored.
type heldClusters struct {
	// names of the Clusters, NAMESPACE/NAME, and all objects.
	names   []string
	objects []capi.Portable
	// fleet and managementCluster had them.
	fleet, managementCluster string
	// begun is the UID of the cluster that an earlier run began to restore into; "" if there is none.
	begun string
}

// otherOwners finds the clusters that another management cluster manages now, with a sentence about each. The clusters themselves know, and
// the fleet repo, also of a cluster that does not answer: a transfer moves the cluster's folder there. Silent are the clusters that do not
// answer, of which only the fleet repo knows.
func otherOwners(ctx context.Context, s *session.Session, h heldClusters) (*handover.Holders, error) {
	holders := handover.Elsewhere(ctx, h.objects, handover.Party{Name: h.managementCluster, UID: h.begun}, h.fleet)
	if len(h.names) == 0 {
		return holders, ctx.Err()
	}
	others := holders.Others
	declared, err := declaredElsewhere(ctx, s)
	if err != nil {
		return nil, diag.Wrap("look in the fleet repo which management clusters the clusters belong to", err, diag.Hint(err))
	}
	for _, full := range h.names {
		_, name, _ := strings.Cut(full, "/")
		if owner := declared[name]; owner != "" && others[full] == "" {
			others[full] = "belongs to " + owner + " in the fleet repo"
		}
	}
	holders.Silent = slices.DeleteFunc(holders.Silent, func(full string) bool { return others[full] != "" })
	return holders, ctx.Err()
}

// declaredElsewhere returns the owners of the clusters that belong to other management clusters than the session's in the fleet repo, by
// the cluster's name. It reads the fleet repo as the remote has it, because the clone on this machine may be old.
func declaredElsewhere(ctx context.Context, s *session.Session) (map[string]string, error) {
	repo, remove, err := remoteRepo(ctx, s)
	if err != nil {
		return nil, err
	}
	defer remove()
	owners, err := repo.HandedOverBy(s.DeclaredAs())
	if err != nil {
		return nil, err
	}
	clusters, _, err := census.Clusters(ctx, repo)
	if err != nil && ctx.Err() == nil { // after a loss, a restore does with what can be read
		s.Deps.Report.Warn("clusters that the fleet repo declares as plain manifests are not compared: " + err.Error())
		clusters, _, err = repo.Clusters()
	}
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		owners[c.Name] = c.ManagementCluster
	}
	for _, c := range clusters { // the same name may be used in several environments
		if c.ManagementCluster == s.DeclaredAs() {
			delete(owners, c.Name)
		}
	}
	return owners, nil
}

// remoteRepo opens the fleet repo as the branch of its remote has it, or as the clone on this machine has it if the remote cannot be read
// or must not be asked (see session.ClonedFrom). The caller calls remove afterwards.
func remoteRepo(ctx context.Context, s *session.Session) (repo *fleetrepo.Repo, remove func(), err error) {
	read := &following.Checkout{Dir: s.Opts.Dir}
	if s.ClonedFrom() == "" {
		quiet := following.Rehearsal{Name: s.Mgmt.Name, Warn: func(string) {}} // the rehearsal before the take-over warns
		if read, err = quiet.CheckOut(ctx, s.Opts.Dir, s.Fleet.Spec.Git.Branch, s.PushAuth()); err != nil {
			return nil, nil, err
		}
	}
	if repo, err = fleetrepo.OpenCopy(read.Dir, s.Opts.Dir); err != nil {
		read.Remove()
		return nil, nil, err
	}
	return repo, read.Remove, nil
}

// aboutSilent says that clusters could not be asked for their owner.
func aboutSilent(silent []string) string {
	return fmt.Sprintf("%s could not be asked for the owner, because the API server does not answer this machine: %s. If another "+
		"management cluster has taken one over, or if one was detached, two would manage it",
		plain.Count(len(silent), "cluster"), plain.Names(silent, 8))
}
