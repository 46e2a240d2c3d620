package pivot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/census"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/variables"
)

// read compares the snapshot with Git, with the owners that its clusters name, and with the credentials on this machine.
func (d *drill) read(ctx context.Context) error {
	if d.snap.HandedOver != "" {
		d.find(diag.SeverityError, fmt.Sprintf("%s has handed its work over to %s, so nothing of it may be restored",
			d.snap.ManagementCluster, d.snap.HandedOver),
			"run drills with the snapshots of "+d.snap.HandedOver)
	}
	d.readAge(time.Since(d.snap.Taken))
	if err := d.readGit(ctx); err != nil {
		return err
	}
	d.readProviders()
	d.readSecrets()
	if err := d.readOwners(ctx); err != nil {
		return err
	}
	d.result.Elsewhere = append(d.result.Elsewhere,
		"the fleet's private age key, which decrypts the snapshot and the secrets in Git (this machine has it)")
	return d.readVariables(ctx)
}

// readOwners finds out whether other management clusters manage clusters of the snapshot now.
func (d *drill) readOwners(ctx context.Context) error {
	holders, err := otherOwners(ctx, d.session, heldClusters{
		names: d.snap.Clusters, objects: d.snap.Objects, fleet: d.snap.Fleet, managementCluster: d.snap.ManagementCluster,
	})
	if err != nil {
		return err
	}
	if len(holders.Others) > 0 {
		d.find(diag.SeverityError, "other management clusters have taken over clusters of the snapshot: "+saysOf(holders.Others),
			"take a new snapshot: `fleetctl backup`")
	}
	if len(holders.Silent) > 0 {
		d.find(diag.SeverityWarning, aboutSilent(holders.Silent), "")
	}
	return nil
}

// readAge compares the age of the snapshot with the age that it may have. The age is less than 0 if the clock of the machine that took the
// snapshot was ahead of the clock here.
func (d *drill) readAge(age time.Duration) {
	switch {
	case d.opts.MaxAge <= 0:
	case age > d.opts.MaxAge:
		d.find(diag.SeverityError, fmt.Sprintf("the snapshot %s is %s old, and may be %s", d.snap.ID, age.Round(time.Second), d.opts.MaxAge),
			"take one now (`fleetctl backup`), and let a timer take the next ones")
	case -age > d.opts.MaxAge:
		d.find(diag.SeverityError, fmt.Sprintf("how old the snapshot %s is cannot be told: by the clock of the machine that took it (%s), "+
			"it will be taken in %s", d.snap.ID, d.snap.By, (-age).Round(time.Minute)),
			"set the clock there, or here, and take one now: `fleetctl backup`")
	}
}

// readGit compares the clusters that Git declares with the clusters of the snapshot.
func (d *drill) readGit(ctx context.Context) error {
	declared, problems, err := declaredClusters(ctx, d.session)
	if err != nil {
		return err
	}
	for _, p := range problems {
		d.find(diag.SeverityWarning, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Summary), "`fleetctl validate` shows it")
	}
	held := map[string]bool{} // by name alone, because an adopted fleet may use any namespace
	for _, full := range d.snap.Clusters {
		_, name, _ := strings.Cut(full, "/")
		held[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !held[name] {
			d.find(diag.SeverityError, "cluster "+name+" is declared in Git, and not in the snapshot: a restore would create it a second time",
				"if it exists already, take a new snapshot: `fleetctl backup`")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if !declared[name] {
			d.find(diag.SeverityWarning,
				"cluster "+name+" is in the snapshot, but Git no longer declares it: a restore would bring it back, and no Flux would apply it", "")
		}
	}
	return nil
}

// declaredClusters returns the names of the clusters that Git declares for the management cluster, and the parts of Git that cannot be
// read.
func declaredClusters(ctx context.Context, s *session.Session) (map[string]bool, []diag.Finding, error) {
	repo, err := fleetrepo.Open(s.Opts.Dir)
	if err != nil {
		return nil, nil, err
	}
	clusters, problems, err := census.Clusters(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	declared := map[string]bool{}
	for _, c := range clusters {
		if c.ManagementCluster == s.DeclaredAs() {
			declared[c.Name] = true
		}
	}
	return declared, problems, nil
}

// readProviders compares the providers that fleet.yaml declares with the providers that made the objects of the snapshot.
func (d *drill) readProviders() {
	declared := components.DeclaredProviders(d.session.Mgmt.Providers)
	for _, was := range d.snap.Providers { // "core provider cluster-api v1.14.2"
		i := slices.IndexFunc(declared, func(p releases.Provider) bool {
			p.Version = ""
			return strings.HasPrefix(was, p.String()+" ")
		})
		switch {
		case i < 0:
			d.find(diag.SeverityError, "the snapshot was taken with "+was+", which fleet.yaml does not declare",
				"`fleetctl provider add` declares it")
		case declared[i].Version != "" && declared[i].String() != was:
			d.find(diag.SeverityWarning, fmt.Sprintf("the snapshot was taken with %s, and fleet.yaml declares %s", was, declared[i].Version), "")
		}
	}
}

// readSecrets finds clusters whose kubeconfig Secret is missing in the snapshot. Cluster API cannot manage a cluster without it.
func (d *drill) readSecrets() {
	there := map[string]bool{}
	for _, o := range d.snap.Objects {
		var obj struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		if json.Unmarshal(o.Object, &obj) != nil || obj.Kind != "Secret" {
			continue
		}
		if cluster, is := capi.ClusterOfKubeconfig(kube.Key{Namespace: obj.Metadata.Namespace, Name: obj.Metadata.Name}); is {
			there[cluster.String()] = true
		}
	}
	for _, cluster := range d.snap.Available {
		if !there[cluster] {
			d.find(diag.SeverityError, "the kubeconfig of cluster "+cluster+" is not in the snapshot: Cluster API could not reach the cluster",
				"find out why its Secret is missing in the management cluster, and then take a new snapshot")
		}
	}
}

// readVariables finds out whether this machine has the values that init needs and Git does not have. It keeps no value.
func (d *drill) readVariables(ctx context.Context) error {
	for _, p := range d.session.Mgmt.Providers {
		for _, v := range p.Variables {
			if v.Value != nil {
				continue // Git has the value
			}
			at := fmt.Sprintf("%s of provider %s, from %s", v.Name, p.Name, variables.SourceOf(v))
			d.result.Elsewhere = append(d.result.Elsewhere, at)
			if v.Stdin || v.Vault != nil || len(v.Command) > 0 && d.opts.NoCommands {
				continue // init asks the user for it
			}
			if _, err := variables.Value(ctx, v, d.session.Opts.Dir, d.session.Deps.Inputs()); err != nil {
				d.find(diag.SeverityError, at+", is not available here: "+err.Error(), diag.Hint(err))
			}
		}
	}
	if d.session.Fleet.Spec.Git.URL != "" {
		d.result.Elsewhere = append(d.result.Elsewhere, "the credentials with which Flux and fleetctl read the Git remote")
	}
	return ctx.Err()
}

// placeholders replaces the values of environment variables, because a drill uses no credentials. Switches and numbers keep their values,
// because a provider's manager would not start without them.
type placeholders struct {
	real func(string) (string, bool)

	mu    sync.Mutex
	asked []string
}

var harmless = regexp.MustCompile(`^(true|false|[0-9]{1,9}|)$`)

func (p *placeholders) lookup(name string) (string, bool) {
	value, ok := p.real(name)
	if !ok || harmless.MatchString(value) {
		return value, ok
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, name)
	return variables.StandIn, true
}

// names returns the names of the environment variables that were asked for.
func (p *placeholders) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.asked)
	var names []string
	for _, name := range slices.Compact(p.asked) {
		names = append(names, name+", from the environment")
	}
	return names
}

// withPlaceholders returns the providers with placeholders as the values of their variables.
func withPlaceholders(providers []v1alpha1.Provider) []v1alpha1.Provider {
	all := slices.Clone(providers)
	for i := range all {
		all[i].Variables = slices.Clone(all[i].Variables)
		for k, v := range all[i].Variables {
			if v.Value == nil {
				stand := variables.StandIn
				all[i].Variables[k] = v1alpha1.Variable{Name: v.Name, Value: &stand}
			}
		}
	}
	return all
}
