package reclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/cloud/vsphere"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/variables"
)

// account is a cloud account, opened with credentials. Key identifies the account, so that each account is asked once.
type account interface {
	cloud.Account
	Key() string
}

// site is where the credentials of one provider of a management cluster are looked for.
type site struct {
	deps       management.Deps
	options    Options
	management string
	// vault says how the management cluster's variables are read from Vault.
	vault    v1alpha1.Vault
	provider v1alpha1.Provider
	// vcenters are the vCenters in the fleet repo. All sites share one read of the repo, which the first site makes.
	vcenters func() ([]fleetrepo.VCenter, error)
	// unasked are the management clusters that did not answer.
	unasked []orphans.Unasked
}

// opened are the accounts that the credentials of one provider open.
type opened struct {
	accounts []account
	// not are the reports of accounts that should have opened.
	not []orphans.CloudReport
	// unasked are accounts that only other credentials open.
	unasked []orphans.AccountNotAsked
}

// askable maps the providers whose clouds can be listed to the function that opens their accounts.
var askable = map[string]func(context.Context, site) opened{"aws": openAWS, "vsphere": openVSphere}

// isInfrastructure tells whether a provider makes clusters, and so may have resources in a cloud.
func isInfrastructure(p v1alpha1.Provider) bool {
	return cmp.Or(p.Type, v1alpha1.ProviderInfrastructure) == v1alpha1.ProviderInfrastructure
}

// isAskable tells whether the resources in the cloud of a provider can be listed.
func isAskable(p v1alpha1.Provider) bool { return isInfrastructure(p) && askable[p.Name] != nil }

// hasAskable tells whether the fleet has a cloud whose resources can be listed.
func (o Options) hasAskable() bool {
	return slices.ContainsFunc(o.Repo.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
		return slices.ContainsFunc(m.Providers, isAskable)
	})
}

// withoutCloud is the provider that makes clusters of containers and in memory.
const withoutCloud = "docker"

// notListed returns the infrastructure providers of the management clusters whose clouds cannot be listed, sorted. There are none for a
// user who asks for some regions only.
func notListed(clusters []v1alpha1.ManagementCluster, regions []string) []string {
	var names []string
	for _, m := range clusters {
		for _, p := range m.Providers {
			if isInfrastructure(p) && !isAskable(p) && p.Name != withoutCloud && len(regions) == 0 {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noneToAsk is the error of a fleet without an account that could be asked.
func noneToAsk(o Options) error {
	if len(o.Regions) > 0 {
		return diag.Usage("leave --region out to ask all", "no cloud of the fleet has %s", strings.Join(o.Regions, ", "))
	}
	return diag.Errorf("look into the cloud by hand; this command can ask AWS and vSphere",
		"fleet.yaml declares neither the provider aws nor the provider vsphere")
}

// open opens every account that the fleet's management clusters have credentials for, each once. Several credentials for one account are
// alternatives: some may only assume roles.
func (o Options) open(ctx context.Context, deps management.Deps, look *orphans.Options) {
	accounts := map[string]*alternatives{}
	var unasked []orphans.AccountNotAsked
	vcenters := sync.OnceValues(o.Repo.VCenters)
	for _, m := range o.Repo.Fleet.Spec.ManagementClusters {
		for _, p := range m.Providers {
			if !isAskable(p) {
				continue
			}
			these := askable[p.Name](ctx, site{deps, o, m.Name, m.Vault, p, vcenters, look.Unasked})
			look.NotOpened = append(look.NotOpened, these.not...)
			unasked = append(unasked, these.unasked...)
			for _, a := range these.accounts {
				key := a.Cloud() + " " + a.Key()
				if accounts[key] == nil {
					accounts[key] = &alternatives{account: a}
					look.Accounts = append(look.Accounts, accounts[key])
					continue
				}
				accounts[key].others = append(accounts[key].others, a)
			}
		}
	}
	for _, u := range unasked {
		opens := u.Account != "" && accounts[u.Cloud+" "+u.Account] != nil
		if !opens && !slices.Contains(look.AccountsNotAsked, u) {
			look.AccountsNotAsked = append(look.AccountsNotAsked, u)
		}
	}
}

// alternatives are several credentials for one account. The account is asked, and changed, with those that have the rights to list it.
type alternatives struct {
	account

	others []account
}

// Find asks with one credential after the other until one of them lists everything. It returns the answer with the fewest problems.
func (a *alternatives) Find(ctx context.Context, fleet string, clusters []string) cloud.Found {
	found := a.account.Find(ctx, fleet, clusters)
	for i, other := range a.others {
		if len(found.Problems) == 0 {
			break
		}
		if again := other.Find(ctx, fleet, clusters); len(again.Problems) < len(found.Problems) {
			found, a.account, a.others[i] = again, other, a.account
		}
	}
	return found
}

// failed is the report of a cloud that cannot be asked.
func (s site) failed(region, text, hint string) []orphans.CloudReport {
	regions := []string{}
	if region != "" {
		regions = append(regions, region)
	}
	problem := cloud.Problem{Region: region, Text: text, Hint: hint}
	return []orphans.CloudReport{{Cloud: s.provider.Name, Regions: regions, Problems: []cloud.Problem{problem}}}
}

// noCredentials is the report of a cloud without credentials to ask it with.
func (s site) noCredentials(err error) []orphans.CloudReport {
	return s.failed("", fmt.Sprintf("the credentials of management cluster %s: %v", s.management, err), diag.Hint(err))
}

// credential is the value of one variable of the provider, from where fleet.yaml says. leased tells that Vault made it for this command.
func (s site) credential(ctx context.Context, name string) (value string, leased bool, err error) {
	variable := v1alpha1.Variable{Name: name}
	for _, v := range s.provider.Variables {
		if v.Name == name && !withdrawn(s.provider.Name, v) {
			variable = v
		}
	}
	environment := "export " + name + "=… for this command"
	given, _ := s.deps.LookupEnv(name)
	commands := s.options.RunCommands
	switch {
	case variable.Vault != nil && given == "":
		value, leased, err = s.options.Vault.Value(ctx, s.vault, variable)
		return value, leased, diag.Wrap("they come from Vault", err, cmp.Or(diag.Hint(err), environment))
	case (variable.Stdin || len(variable.Command) > 0 && !commands) && given == "":
		return "", false, diag.Errorf("add --run-commands, or "+environment, "they come from %s", variables.SourceOf(variable))
	case variable.Vault != nil || variable.Stdin || len(variable.Command) > 0 && !commands:
		variable = v1alpha1.Variable{Name: name}
	}
	value, err = variables.Value(ctx, variable, s.options.Dir, s.deps.Inputs())
	return variables.Encoded(variable, value), false, err
}

// withdrawn tells whether a provider runs without its credential, so that its value in fleet.yaml gives access to nothing.
func withdrawn(provider string, v v1alpha1.Variable) bool {
	return v.Value != nil && credentials.IsNone(provider, v.Name, *v.Value)
}

// trusted are the vCenters that the environment names. Only these get a password: who may edit the fleet repo must not be able to send it
// elsewhere.
func trusted(s site) []string {
	value, _ := s.deps.LookupEnv(vsphere.ServerVariable)
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// vcentersIn are the addresses of all vCenters that the environment and the fleet repo name.
func vcentersIn(s site) []string {
	all := trusted(s)
	named, _ := s.vcenters() // openVSphere tells of the error
	for _, v := range named {
		all = append(all, v.Server)
	}
	return all
}

func openVSphere(ctx context.Context, s site) opened {
	named, err := s.vcenters()
	if err != nil {
		return opened{not: s.failed("", "which vCenters the clusters are in: "+err.Error(), diag.Hint(err))}
	}
	all := trusted(s)
	servers := slices.DeleteFunc(slices.Clone(all), func(server string) bool { return !s.asks(server) })
	var unasked []string
	for _, v := range named {
		if !slices.Contains(all, v.Server) && s.asks(v.Server) {
			unasked = append(unasked, v.Server)
		}
	}
	var not []orphans.CloudReport
	export := "export " + vsphere.ServerVariable + "="
	every := strings.Join(slices.Concat(all, unasked), ",")
	for _, server := range unasked {
		text := "clusters of the fleet repo are in this vCenter, and the environment variable " + vsphere.ServerVariable + " does not name it"
		not = append(not, s.failed(server, text, "if it is yours, "+export+every)...)
	}
	if len(all)+len(unasked) == 0 && len(s.options.Regions) == 0 {
		text := fmt.Sprintf("the environment variable %s does not name the vCenter of management cluster %s",
			vsphere.ServerVariable, s.management)
		return opened{not: s.failed("", text, export+"vcenter.example.com")}
	}
	if len(servers) == 0 {
		return opened{not: not}
	}
	var given [2]string
	for i, name := range []string{vsphere.UserVariable, vsphere.PasswordVariable} {
		if given[i], _, err = s.credential(ctx, name); err != nil {
			return opened{not: append(not, s.noCredentials(err)...)}
		}
	}
	var accounts []account
	for _, server := range servers {
		a, err := vsphere.New(server, given[0], given[1], s.thumbprint(server, named))
		if err != nil {
			not = append(not, s.failed("", err.Error(), diag.Hint(err))...)
			continue
		}
		accounts = append(accounts, a)
	}
	return opened{accounts: accounts, not: not}
}

func (s site) asks(server string) bool {
	return len(s.options.Regions) == 0 || slices.Contains(s.options.Regions, server)
}

// thumbprint of a vCenter's certificate: from the environment, which then names one vCenter, or from the clusters in this vCenter.
func (s site) thumbprint(server string, named []fleetrepo.VCenter) string {
	if value, _ := s.deps.LookupEnv(vsphere.ThumbprintVariable); value != "" && len(trusted(s)) == 1 {
		return value
	}
	for _, v := range named {
		if v.Server == server {
			return v.Thumbprint
		}
	}
	return ""
}
