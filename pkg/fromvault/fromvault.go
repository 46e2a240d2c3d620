// Package fromvault installs providers with values of variables that come from Vault. It asks only for what is needed, and renews a lease
// rather than having Vault make a new secret.
package fromvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/variables"
	"github.com/fleetctl/fleetctl/pkg/vault"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// serviceAccountToken is where a pod finds the token of its service account.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // the path of a token is none

// restOfLease is the part of its time from which on a lease is renewed, or replaced.
const restOfLease = 3

// Client is the Vault of this fleet. Which server it is says the environment alone: whoever writes fleet.yaml does not say where the
// token goes.
func Client(s *session.Session) (*vault.Client, error) {
	return connect(s.Mgmt.Vault, s.SourcesDir(), s.Deps.LookupEnv)
}

// connect returns the Vault that the environment names. o says how to log in; its files are relative to dir.
func connect(o v1alpha1.Vault, dir string, lookupEnv func(string) (string, bool)) (*vault.Client, error) {
	env := func(name string) string { value, _ := lookupEnv(name); return value }
	secret := func(name string) string { return strings.TrimSpace(env(name)) } // a pipeline's variable may end in a newline
	config := vault.Config{
		Address: env("VAULT_ADDR"), Namespace: cmp.Or(o.Namespace, env("VAULT_NAMESPACE")), Mount: o.Mount, Role: o.Role,
		Method: vault.Method(cmp.Or(o.Method, v1alpha1.VaultToken)),
		Token:  secret("VAULT_TOKEN"), RoleID: secret("VAULT_ROLE_ID"), SecretID: secret("VAULT_SECRET_ID"),
	}
	if config.Address == "" {
		return nil, diag.Errorf("export VAULT_ADDR=https://vault.example.com:8200", "variables come from Vault, and nothing says where it is")
	}
	var err error
	switch {
	case o.CAFile != "":
		config.CA, err = within.Named(session.In(dir, o.CAFile), within.MostNamed)
	case env("VAULT_CACERT") != "":
		config.CA, err = within.Given(env("VAULT_CACERT"), within.MostNamed)
	}
	if err != nil {
		return nil, diag.Wrap("read the certificate authorities of Vault", err,
			"vault.caFile of the management cluster in fleet.yaml, or VAULT_CACERT, names a PEM file")
	}
	if config.JWT, err = identityToken(o, dir, env); err != nil {
		return nil, err
	}
	if file := TokenFile(o, dir, lookupEnv); file != "" {
		config.ReadToken = func() (string, error) { return tokenIn(file) }
		if _, err := config.ReadToken(); err != nil { // before anything is made
			return nil, err
		}
	}
	return vault.New(config)
}

// identityToken is what an identity provider says of this run: to Vault's methods jwt and kubernetes.
func identityToken(o v1alpha1.Vault, dir string, env func(string) string) (string, error) {
	file := o.JWTFile
	switch {
	case o.Method == v1alpha1.VaultKubernetes && o.JWTFile == "" && o.JWTEnv == "":
		file = serviceAccountToken
	case o.Method != v1alpha1.VaultKubernetes && o.Method != v1alpha1.VaultJWT:
		return "", nil
	case file == "":
		name := cmp.Or(o.JWTEnv, "VAULT_ID_TOKEN")
		value := env(name)
		if value == "" {
			return "", diag.Errorf("have the pipeline make it: `id_tokens:` in GitLab, `id-token: write` in GitHub Actions",
				"the environment variable %s, which is to log in to Vault, is not set", name)
		}
		return strings.TrimSpace(value), nil
	}
	raw, err := within.Named(session.In(dir, file), within.MostNamed)
	return strings.TrimSpace(string(raw)), diag.Wrap("read the token that is to log in to Vault", err,
		"vault.jwtFile of the management cluster in fleet.yaml names it")
}

// Install has the providers installed with the values of variables that come from Vault, as far as they are needed.
func Install(
	ctx context.Context,
	s *session.Session,
	v *resolve.Versions,
	manager *capi.Manager,
	opts capi.InstallOptions,
) (*capi.InstallResult, error) {
	opts.Origins = v.Origins
	if len(v.Vault) == 0 {
		return manager.Install(ctx, v.Source, opts)
	}
	client, err := Client(s)
	if err != nil {
		return nil, err
	}
	held, err := manager.Held(ctx)
	if err != nil {
		return nil, err
	}
	leases := &leases{client: client, held: held, values: maps.Clone(v.Variables), origins: maps.Clone(v.Origins), now: time.Now()}
	opts.Origins = leases.origins
	opts.Detail("asking Vault at " + client.Server())
	if err := leases.get(ctx, byPath(v.Vault)); err != nil {
		return nil, err
	}
	for {
		source, err := v.Source.WithVariables(leases.values, leases.kept...)
		if err != nil {
			return nil, err
		}
		result, err := manager.Install(ctx, source, opts)
		needs, ok := errors.AsType[*capi.NeedsValuesError](err)
		if !ok || len(leases.kept) == 0 {
			return result, err
		}
		if err := leases.readKept(ctx, v.Vault, needs.Names); err != nil {
			return nil, err
		}
	}
}

// byPath groups variables that come from the same secret, which is read only once, because each read may return another secret.
func byPath(all []v1alpha1.Variable) [][]v1alpha1.Variable {
	var groups [][]v1alpha1.Variable
	for _, v := range all {
		i := slices.IndexFunc(groups, func(g []v1alpha1.Variable) bool { return g[0].Vault.Path == v.Vault.Path })
		if i < 0 {
			groups = append(groups, []v1alpha1.Variable{v})
		} else {
			groups[i] = append(groups[i], v)
		}
	}
	return groups
}

// leases gets values from Vault, and decides which earlier leases are still good.
type leases struct {
	client  *vault.Client
	held    *credentials.Record
	values  map[string]string
	origins map[string]credentials.Origin
	kept    []string
	taken   []string // the leases that Vault has given to this run
	now     time.Time
}

// get keeps or reads the values of all groups. If it cannot, it gives back what Vault has leased to it: no cluster has these values, and
// without this, a pipeline that tries again and again would leave a credential behind each time.
func (l *leases) get(ctx context.Context, groups [][]v1alpha1.Variable) error {
	for _, group := range groups {
		if l.keep(ctx, group) {
			continue
		}
		if err := l.read(ctx, group); err != nil {
			return diag.Wrap("", errors.Join(err, l.giveBack(ctx)), "")
		}
	}
	return nil
}

// giveBack gives back what Vault has leased to this run, also after the end of ctx. It gives nothing back that the cluster may use: a cache
// before Vault, such as Vault Agent's, answers with the token and the leases of an earlier run.
func (l *leases) giveBack(ctx context.Context) error {
	held := map[string]bool{}
	for _, p := range l.held.Providers {
		for _, v := range p.Variables {
			held[v.Lease] = true
		}
	}
	used := slices.ContainsFunc(l.taken, func(lease string) bool { return held[lease] })
	if len(l.taken) == 0 || used || len(l.kept) > 0 && l.client.LogsIn() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	return l.client.GiveBack(ctx, l.taken...)
}

// asked describes the request for a lease. It tells whether an earlier lease is for the same value.
func (l *leases) asked(v v1alpha1.Variable) string {
	return fmt.Sprintf("%s %s %s %s %s %v", l.client.Server(), l.client.Namespace(), v.Vault.Path, v.Vault.Field, v.Vault.Text, v.Base64)
}

// keep keeps the cluster's values of a group if their lease lasts long enough, or can be renewed.
func (l *leases) keep(ctx context.Context, group []v1alpha1.Variable) bool {
	origins := map[string]credentials.Origin{}
	for _, v := range group {
		origin, ok := l.origin(v)
		if !ok {
			return false
		}
		origins[v.Name] = origin
	}
	first := origins[group[0].Name]
	if slices.ContainsFunc(group, func(v v1alpha1.Variable) bool { return origins[v.Name].Lease != first.Lease }) {
		return false
	}
	until, renewable, there := l.end(ctx, first)
	if !there {
		return false
	}
	rest := first.Duration / restOfLease
	if until.Sub(l.now) <= rest {
		if !renewable {
			return false
		}
		var err error
		until, renewable, err = l.client.Renew(ctx, first.Lease, first.Duration)
		if err != nil || until.Sub(l.now) <= rest { // the lease has reached its maximum age, or was revoked: request a new one
			return false
		}
	}
	for _, v := range group {
		origin := origins[v.Name]
		origin.Until, origin.Renewable = &until, renewable
		l.origins[v.Name] = origin
		l.kept = append(l.kept, v.Name)
	}
	return true
}

// end returns when a lease ends, and whether that can be put off: as Vault says, because the machine that recorded the end may have had
// another clock, somebody may have revoked the lease, and another run may have extended it. If the token may not ask Vault, it is as
// recorded. there is false if Vault has no such lease any more.
func (l *leases) end(ctx context.Context, recorded credentials.Origin) (until time.Time, renewable, there bool) {
	until, renewable, err := l.client.LeaseEnd(ctx, recorded.Lease)
	switch {
	case errors.Is(err, vault.ErrNoLease):
		return time.Time{}, false, false
	case err != nil:
		return *recorded.Until, recorded.Renewable, true
	case !recorded.Renewable && recorded.Until.Before(until): // it ends with the token that asked for it, which Vault does not tell
		until = *recorded.Until
	}
	return until, renewable && recorded.Renewable, true
}

// origin returns the recorded origin of a variable's value. It returns false if the providers with the variable have no lease for the same
// request, or different leases.
func (l *leases) origin(v v1alpha1.Variable) (credentials.Origin, bool) {
	var found *credentials.Origin
	for _, p := range l.held.Providers {
		there, ok := p.Variables[v.Name]
		if !ok {
			continue
		}
		o := there.Origin
		if o.Lease == "" || o.Until == nil || o.Asked != l.asked(v) || found != nil && found.Lease != o.Lease {
			return credentials.Origin{}, false
		}
		found = &o
	}
	if found == nil {
		return credentials.Origin{}, false
	}
	return *found, true
}

// read asks Vault for the secret of group.
func (l *leases) read(ctx context.Context, group []v1alpha1.Variable) error {
	secret, err := l.client.Read(ctx, group[0].Vault.Path)
	if err != nil {
		return diag.Wrap("variable "+group[0].Name, err, "")
	}
	if secret.Lease != "" {
		l.taken = append(l.taken, secret.Lease)
	}
	for _, v := range group {
		value, err := valueOf(secret, v.Vault)
		if err == nil {
			err = variables.Check(v, value)
		}
		if err != nil {
			return diag.Wrap("variable "+v.Name, err, "")
		}
		origin := variables.OriginOf(variables.SourceOf(v), value)
		if secret.Lease != "" {
			origin.Lease, origin.Asked, origin.Renewable, origin.Duration = secret.Lease, l.asked(v), secret.Renewable, secret.Duration
			if origin.Until == nil || secret.Until.Before(*origin.Until) {
				origin.Until = secret.Until
			}
		}
		l.values[v.Name], l.origins[v.Name] = variables.Encoded(v, value), origin
	}
	return nil
}

// readKept asks for what was to be kept, and is needed.
func (l *leases) readKept(ctx context.Context, all []v1alpha1.Variable, names []string) error {
	for _, group := range byPath(all) {
		if !slices.ContainsFunc(group, func(v v1alpha1.Variable) bool {
			return slices.Contains(names, v.Name) && slices.Contains(l.kept, v.Name)
		}) {
			continue
		}
		if err := l.read(ctx, group); err != nil {
			return err
		}
		for _, v := range group {
			l.kept = slices.DeleteFunc(l.kept, func(name string) bool { return name == v.Name })
		}
	}
	return nil
}

var fieldInText = regexp.MustCompile(`\$\{([A-Za-z0-9_.-]+)\}`)

// valueOf is what a variable takes of a secret.
func valueOf(secret *vault.Secret, from *v1alpha1.VaultSecret) (string, error) {
	if from.Field != "" {
		return secret.Field(from.Field)
	}
	var problems []error
	text := fieldInText.ReplaceAllStringFunc(from.Text, func(found string) string {
		value, err := secret.Field(fieldInText.FindStringSubmatch(found)[1])
		problems = append(problems, err)
		return value
	})
	return text, errors.Join(problems...)
}
