package reclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/cloud/aws"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
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
	of := identityAccounts{site: s, own: own, regions: regions, identities: identities}
	for _, identity := range identities {
		a, err := of.open(ctx, identity, nil)
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
	profile, leased, err := s.credential(ctx, aws.CredentialsVariable)
	if err != nil {
		return nil, err
	}
	own, err := aws.New(profile, s.endpoint(), regions)
	if err == nil && leased { // Vault has made the key a moment ago
		own.Settle(ctx)
	}
	return own, err
}

func (s site) endpoint() string {
	endpoint, _ := s.deps.LookupEnv(aws.EndpointVariable)
	return endpoint
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

// identityAccounts opens the accounts of identities. own is the account of the provider's own credentials, or nil.
type identityAccounts struct {
	site

	own        *aws.Account
	regions    []string
	identities []fleetrepo.AWSIdentity
}

const byHand = "look into this account by hand, or export " + aws.CredentialsVariable +
	" with credentials of it, and run the command again"

// open opens the account of an identity: with its own key, or with the credentials of the identity that it begins with. below are the
// identities on the way to it.
func (s identityAccounts) open(ctx context.Context, i fleetrepo.AWSIdentity, below []fleetrepo.AWSIdentityRef) (*aws.Account, error) {
	switch {
	case !i.Declared:
		return nil, diag.Errorf("declare it in the fleet repo with `fleetctl identity add`, or "+byHand,
			"%s uses the identity, and the fleet repo does not declare it", i.File)
	case i.Kind == fleetrepo.AWSStaticIdentity:
		return s.withKey(ctx, i.Name)
	case role(i).Account() == "":
		return nil, diag.Errorf(byHand, "%s: its roleARN is not the ARN of a role, or Flux fills it in", i.File)
	case slices.Contains(below, i.AWSIdentityRef):
		return nil, diag.Errorf("correct their sourceIdentityRef", "%s: the identity begins with itself", i.File)
	}
	from := s.own
	admit := "the credentials of management cluster " + s.management
	if i.Source.Kind == fleetrepo.AWSRoleIdentity || i.Source.Kind == fleetrepo.AWSStaticIdentity {
		source := slices.IndexFunc(s.identities, func(other fleetrepo.AWSIdentity) bool {
			return other.Declared && other.AWSIdentityRef == i.Source
		})
		admit = i.Source.Kind + " " + i.Source.Name
		if source < 0 {
			return nil, diag.Errorf(byHand, "the fleet repo does not declare its source, %s", admit)
		}
		var err error
		if from, err = s.open(ctx, s.identities[source], append(slices.Clone(below), i.AWSIdentityRef)); err != nil {
			return nil, diag.Wrap("its source, "+admit, err, diag.Hint(err))
		}
	}
	if from == nil {
		return nil, fmt.Errorf("nothing can assume the role %s without the credentials of management cluster %s", i.RoleARN, s.management)
	}
	a, err := from.Assume(ctx, role(i))
	if err != nil {
		return nil, diag.Wrap("", err, "let the trust policy of the role admit "+admit+"; or "+byHand)
	}
	return a, nil
}

// withKey opens the account of the AWSClusterStaticIdentity called name. Its key is in a Secret of the management cluster.
func (s identityAccounts) withKey(ctx context.Context, name string) (*aws.Account, error) {
	key, err := s.staticKey(ctx, name)
	if err != nil {
		return nil, diag.Wrap(fmt.Sprintf("its key is in a Secret of management cluster %s, which could not be read", s.management), err,
			cmp.Or(diag.Hint(err), "let the kubeconfig of this command read the identity and its Secret")+"; or "+byHand)
	}
	region := ""
	if s.own != nil {
		region = s.own.Region() // which is in the same partition of AWS
	}
	a := aws.WithKey(aws.Key{ID: key.AccessKeyID, Secret: key.SecretAccessKey, Token: key.SessionToken}, region, s.endpoint(), s.regions)
	// Only the number tells that other credentials open the same account. AWS tells it to every valid key.
	if err := a.Identify(ctx); err != nil {
		return nil, diag.Wrap("the key in its Secret of management cluster "+s.management, err,
			"if the key is no longer valid, put a new one into the Secret; or "+byHand)
	}
	return a, nil
}

// staticKey reads the key on the management cluster. A management cluster that has not told which clusters it owns is not asked again: it
// may be another one.
func (s site) staticKey(ctx context.Context, name string) (capi.AWSKey, error) {
	for _, u := range s.unasked {
		if u.Name == s.management {
			return capi.AWSKey{}, diag.Wrap("", errors.New(u.Error), u.Hint)
		}
	}
	i := slices.IndexFunc(s.options.Targets, func(t *management.Target) bool { return t.Name == s.management })
	if i < 0 {
		return capi.AWSKey{}, errors.New("the management cluster is gone")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := s.options.Targets[i].Client(ctx)
	if err != nil {
		return capi.AWSKey{}, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return capi.AWSKey{}, err
	}
	return manager.AWSStaticKey(ctx, name)
}
