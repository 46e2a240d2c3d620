package reclaim

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/cloud/aws"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/orphans"
)

// openAWS opens the account of the provider's own credentials, and the accounts of the roles that clusters use instead of them.
func openAWS(ctx context.Context, s site) opened {
	regions := slices.Clone(s.options.Regions)
	if len(regions) > 0 {
		vcenters := vcentersIn(s)
		if regions = slices.DeleteFunc(regions, func(r string) bool { return slices.Contains(vcenters, r) }); len(regions) == 0 {
			return opened{} // it is asked about vCenters alone
		}
	}
	var all opened
	own, err := s.ownAWS(ctx, regions)
	if err != nil {
		all.not = s.noCredentials(err)
	}
	identities, err := s.options.Repo.AWSIdentities(s.management)
	if err != nil {
		all.not = append(all.not, s.failed("", "which accounts the clusters are in: "+err.Error(), diag.Hint(err))...)
	}
	if own != nil {
		if len(identities) > 0 || s.shares() {
			// Without the number, only the credentials identify the account. If this request fails, the others fail as well, and tell why.
			_ = own.Identify(ctx)
		}
		all.accounts = append(all.accounts, own)
	}
	for _, identity := range identities {
		a, err := s.assume(ctx, own, identities, identity, nil)
		if err == nil {
			all.accounts = append(all.accounts, a)
			continue
		}
		all.unasked = append(all.unasked, orphans.AccountNotAsked{
			Cloud: s.provider.Name, Account: role(identity).Account(), Identity: identity.Kind + " " + identity.Name,
			Why: err.Error(), Hint: diag.Hint(err),
		})
	}
	return all
}

func (s site) ownAWS(ctx context.Context, regions []string) (*aws.Account, error) {
	profile, err := s.credential(ctx, aws.CredentialsVariable)
	if err != nil {
		return nil, err
	}
	endpoint, _ := s.deps.LookupEnv(aws.EndpointVariable)
	return aws.New(profile, endpoint, regions)
}

// shares tells whether several management clusters have this provider. They may have different keys for one account.
func (s site) shares() bool {
	n := 0
	for _, m := range s.options.Repo.Fleet.Spec.ManagementClusters {
		for _, p := range m.Providers {
			if p.Name == s.provider.Name && isInfrastructure(p) {
				n++
			}
		}
	}
	return n > 1
}

func role(i fleetrepo.AWSIdentity) aws.Role {
	return aws.Role{ARN: i.RoleARN, ExternalID: i.ExternalID, SessionName: i.SessionName}
}

// assume opens the account of an identity with the credentials of the identity that it begins with. below are the identities on the way to
// it.
func (s site) assume(
	ctx context.Context, own *aws.Account, all []fleetrepo.AWSIdentity, i fleetrepo.AWSIdentity, below []fleetrepo.AWSIdentityRef,
) (*aws.Account, error) {
	const byHand = "look into this account by hand, or export " + aws.CredentialsVariable +
		" with credentials of it, and run the command again"
	switch {
	case !i.Declared:
		return nil, diag.Errorf("declare it in the fleet repo with `fleetctl identity add`, or "+byHand,
			"%s uses the identity, and the fleet repo does not declare it", i.File)
	case i.Kind == fleetrepo.AWSStaticIdentity:
		return nil, diag.Errorf(byHand, "its key is in a Secret of management cluster %s, and this command does not read it", s.management)
	case role(i).Account() == "":
		return nil, diag.Errorf(byHand, "%s: its roleARN is not the ARN of a role, or Flux fills it in", i.File)
	case own == nil:
		return nil, fmt.Errorf("nothing can assume the role %s without the credentials of management cluster %s", i.RoleARN, s.management)
	case slices.Contains(below, i.AWSIdentityRef):
		return nil, diag.Errorf("correct their sourceIdentityRef", "%s: the identity begins with itself", i.File)
	}
	from := own
	if i.Source.Kind == fleetrepo.AWSRoleIdentity || i.Source.Kind == fleetrepo.AWSStaticIdentity {
		source := slices.IndexFunc(all, func(other fleetrepo.AWSIdentity) bool { return other.Declared && other.AWSIdentityRef == i.Source })
		if source < 0 {
			return nil, diag.Errorf(byHand, "the fleet repo does not declare its source, %s %s", i.Source.Kind, i.Source.Name)
		}
		var err error
		if from, err = s.assume(ctx, own, all, all[source], append(slices.Clone(below), i.AWSIdentityRef)); err != nil {
			return nil, diag.Wrap(fmt.Sprintf("its source, %s %s", i.Source.Kind, i.Source.Name), err, diag.Hint(err))
		}
	}
	a, err := from.Assume(ctx, role(i))
	if err != nil {
		return nil, diag.Wrap("", err,
			"let the trust policy of the role admit the credentials of management cluster "+s.management+"; or "+byHand)
	}
	return a, nil
}
