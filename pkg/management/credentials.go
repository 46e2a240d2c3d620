package management

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// CredentialsReport lists the cloud credentials of the management clusters, without their values.
type CredentialsReport struct {
	FormatVersion string `json:"formatVersion"`
	// Within is the time within which an expiry is reported. Ending counts the credentials that expire within it, or have expired.
	Within string `json:"within"`
	Ending int    `json:"ending"`
	// Clusters are the management clusters that were asked.
	Clusters []ClusterCredentials `json:"managementClusters"`
}

// Unread counts the management clusters that did not answer.
func (r *CredentialsReport) Unread() int {
	n := 0
	for _, c := range r.Clusters {
		if c.Error != "" {
			n++
		}
	}
	return n
}

// ClusterCredentials are the credentials of one management cluster.
type ClusterCredentials struct {
	Name string `json:"name"`
	// Error says why the management cluster did not answer.
	Error string `json:"error,omitempty"`
	// Hint says what to do about the error.
	Hint        string       `json:"hint,omitempty"`
	Credentials []Credential `json:"credentials"`
}

// Credential is a variable of a provider, or an identity.
type Credential struct {
	Provider string `json:"provider"`
	// Kind is variable, or the kind of the object.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Source says where the credential comes from, or which role it gives.
	Source string    `json:"source,omitempty"`
	Since  time.Time `json:"since"`
	// Until is the time at which the credential expires; nil if it is not known. Renewable tells whether `fleetctl init` renews it by
	// itself: it extends a lease of Vault, or takes a new one.
	Until     *time.Time `json:"until,omitempty"`
	Renewable bool       `json:"renewable,omitempty"`
	// Ends says whether the credential expires: "", soon or ended.
	Ends string `json:"ends,omitempty"`
	// Namespaces are the namespaces whose clusters may use an identity.
	Namespaces string `json:"namespaces,omitempty"`
}

// The values of Ends.
const (
	EndsSoon = "soon"
	Ended    = "ended"
)

// Credentials asks each target for its credentials, and waits at most timeout for each: those that do not answer take no time of the
// others. A target that does not answer is in the report, with its error.
func Credentials(ctx context.Context, targets []*Target, within, timeout time.Duration, now time.Time) *CredentialsReport {
	report := &CredentialsReport{FormatVersion: "1", Within: within.String(), Clusters: make([]ClusterCredentials, len(targets))}
	_ = kube.Each(4, indices(targets), func(i int) error { // the errors are in the report
		c := ClusterCredentials{Name: targets[i].Name, Credentials: []Credential{}}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		all, err := targets[i].credentials(ctx, within, now)
		if err != nil {
			c.Error, c.Hint = err.Error(), diag.Hint(err)
		}
		c.Credentials = append(c.Credentials, all...)
		report.Clusters[i] = c
		return nil
	})
	for _, c := range report.Clusters {
		for _, each := range c.Credentials {
			if each.Ends != "" {
				report.Ending++
			}
		}
	}
	return report
}

func indices(targets []*Target) []int {
	all := make([]int, len(targets))
	for i := range all {
		all[i] = i
	}
	return all
}

func (t *Target) credentials(ctx context.Context, within time.Duration, now time.Time) ([]Credential, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	return HeldBy(ctx, manager, within, now)
}

// HeldBy returns the credentials of a management cluster's providers that are secret or expire, and its identities.
func HeldBy(ctx context.Context, manager *capi.Manager, within time.Duration, now time.Time) ([]Credential, error) {
	held, err := manager.Held(ctx)
	if err != nil {
		return nil, err
	}
	var all []Credential
	for label, p := range held.Providers {
		for name, v := range p.Variables {
			if !v.Secret && v.Until == nil && v.Lease == "" {
				continue
			}
			all = append(all, Credential{
				Provider: strings.TrimPrefix(label, "infrastructure-"), Kind: "variable", Name: name, Source: v.Source, Since: v.Since,
				Until: v.Until, Renewable: v.Renewable || v.Lease != "", Ends: ends(v.Until, within, now),
			})
		}
	}
	identities, err := manager.Identities(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range identities {
		name := i.Name
		if i.Namespace != "" {
			name = i.Namespace + "/" + name
		}
		all = append(all, Credential{Provider: i.Provider, Kind: i.Kind, Name: name, Source: i.Source, Since: i.Since, Namespaces: i.Namespaces})
	}
	slices.SortFunc(all, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

func ends(until *time.Time, within time.Duration, now time.Time) string {
	switch {
	case until == nil || until.After(now.Add(within)):
		return ""
	case until.After(now):
		return EndsSoon
	}
	return Ended
}
