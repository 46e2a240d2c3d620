package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// PlanOptions say which management cluster to look at, and where to look for newer versions.
type PlanOptions struct {
	// Repo is the fleet repo. ManagementCluster is one of its management clusters; empty: the only one.
	Repo              *fleetrepo.Repo
	ManagementCluster string
	// Bundle is an offline bundle in which to look for versions; empty: the releases, over the network.
	Bundle, CacheDir string
	// Offline looks for no versions over the network. Without a bundle, only the versions that this fleetctl itself knows are then known.
	Offline bool
}

// The kinds of Components other than providers.
const (
	TypeCertManager = "cert-manager"
	TypeFlux        = "flux"
	TypeKubernetes  = "kubernetes"
	// TypeFeature is the type of a feature from a Helm chart, which Flux upgrades as soon as its version in Git changes.
	TypeFeature = "feature"
)

// Plan has the installed, the declared and the available versions of a management cluster.
type Plan struct {
	FormatVersion     string `json:"formatVersion"`
	Fleet             string `json:"fleet"`
	ManagementCluster string `json:"managementCluster"`
	// Components in the order in which they are upgraded.
	Components []Component `json:"components"`
	// ToApply says that the cluster does not run the versions of fleet.yaml, or lacks a component. ToDeclare says that there
	// are newer versions.
	ToApply   bool `json:"toApply"`
	ToDeclare bool `json:"toDeclare"`
	// Unknown lists what could not be found out, each with its reason.
	Unknown []string `json:"unknown"`

	clusterErr error
	// unread are the components whose releases could not be read. Without a network, all have the same reason.
	unread []unread
	charts map[string]chart // of features, by name
}

// releasesErr is the error about unread releases of the components that are of interest.
func (p *Plan) releasesErr(of func(*Component) bool) error {
	var names []string
	var first *unread
	for i := range p.unread {
		u := &p.unread[i]
		if !of(u.component) {
			continue
		}
		names = append(names, u.component.title())
		if first == nil || first.component.Type == TypeFeature && u.component.Type != TypeFeature { // a chart's error speaks of one chart
			first = u
		}
	}
	if first == nil {
		return nil
	}
	slices.Sort(names)
	return diag.Wrap("find out the releases of "+strings.Join(slices.Compact(names), ", "), first.err, diag.Hint(first.err))
}

// unread is a component whose releases could not be read, and the reason.
type unread struct {
	component *Component
	err       error
}

// Todo tells whether there is something to apply or to declare, or a declared version that is not possible.
func (p *Plan) Todo() bool {
	return p.ToApply || p.ToDeclare || slices.ContainsFunc(p.Components, func(c Component) bool { return len(c.Against) > 0 })
}

// Err says what the plan could not find out, whether or not it found something to do.
func (p *Plan) Err() error {
	return cmp.Or(p.releasesErr(func(*Component) bool { return true }), p.clusterErr)
}

// lookLimit bounds the look at a cluster, which answers at once or not at all.
const lookLimit = 8 * time.Second

// planner makes a plan.
type planner struct {
	o        PlanOptions
	mgmt     *v1alpha1.ManagementCluster
	fleet    *v1alpha1.Fleet
	reader   *components.Reader
	source   *releases.Source
	store    state.Store
	mu       sync.Mutex
	plan     *Plan
	stored   map[string]string
	versions map[string]string // installed, by type and name
	foreign  bool              // somebody else has installed cert-manager
	found    found
}

// Make looks at the cluster and at the available versions, side by side, and changes nothing. What it cannot find out
// is in Unknown. Err has the hint what to do about that.
func Make(ctx context.Context, store state.Store, o PlanOptions) (_ *Plan, err error) {
	m, err := o.Repo.Fleet.ManagementCluster(o.ManagementCluster)
	if err != nil {
		return nil, err
	}
	name := m.Name
	reader, err := components.Open(ctx, o.Bundle, o.CacheDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	fleet := *o.Repo.Fleet
	v1alpha1.SetDefaults(&fleet, components.Defaults())
	if m, err = fleet.ManagementCluster(name); err != nil {
		return nil, err
	}
	p := &planner{
		o: o, mgmt: m, fleet: &fleet, reader: reader, store: store, versions: map[string]string{},
		plan: &Plan{FormatVersion: "1", Fleet: fleet.Metadata.Name, ManagementCluster: name, Components: []Component{}, Unknown: []string{}},
	}
	if p.source, err = reader.Source(m); err != nil { //nolint:contextcheck // it reads nothing yet
		return nil, err
	}
	if err := p.lookAtCluster(ctx); err != nil {
		p.plan.Unknown = append(p.plan.Unknown, fmt.Sprintf("what runs on %s: %v", name, err))
		if !errors.Is(err, errElsewhere) { // a pipeline need not know the cluster
			p.plan.clusterErr = diag.Wrap("look at "+name, err, "")
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	p.listComponents()
	if err := p.listFeatures(); err != nil {
		return nil, err
	}
	p.lookAtReleases(contact.WithSilence(ctx, contact.Watched))
	p.noteSkew()
	p.noteFound()
	for i := range p.plan.Components {
		c := &p.plan.Components[i]
		p.plan.ToApply = p.plan.ToApply || (c.Changes() || p.isMissing(c)) && c.Type != TypeKubernetes && c.Type != TypeFeature
		p.plan.ToDeclare = p.plan.ToDeclare || c.Outdated() && c.Type != TypeKubernetes
	}
	return p.plan, context.Cause(ctx)
}

func (p *planner) unknownRelease(c *Component, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.Unknown = append(p.plan.Unknown, fmt.Sprintf("the releases of %s: %v", c.title(), err))
	p.plan.unread = append(p.plan.unread, unread{c, err})
}

// errElsewhere is the error if this machine does not know the management cluster.
var errElsewhere = errors.New("this machine does not know the management cluster")

// lookAtCluster reads the installed versions.
func (p *planner) lookAtCluster(ctx context.Context) error {
	target, err := management.Find(p.store, p.mgmt.Name, p.o.Repo.WorkTree)
	if err != nil {
		return err
	}
	if !target.Known() {
		return errElsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	client, err := target.Client(ctx)
	if err != nil {
		return err
	}
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	var certs, kubernetes string
	group.Go(func() (err error) { p.found.providers, err = manager.Installed(ctx); return err })
	group.Go(func() (err error) { p.found.unrecorded, err = manager.Unrecorded(ctx); return err })
	group.Go(func() (err error) { p.stored, err = manager.Stored(ctx); return err })
	group.Go(func() error {
		version, ours, err := manager.CertManagerVersion(ctx)
		certs, p.foreign = version, !ours
		return err
	})
	group.Go(func() (err error) { p.found.flux, err = flux.NewSystem(client).Status(ctx); return err })
	group.Go(func() (err error) { kubernetes, err = client.ServerVersion(ctx); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	for _, i := range p.found.providers {
		p.versions[string(i.Type)+"/"+i.Name] = i.Version
	}
	p.versions[TypeCertManager+"/"+TypeCertManager], p.versions[TypeFlux+"/"+TypeFlux] = certs, p.found.flux.Version
	p.versions[TypeKubernetes+"/"+TypeKubernetes] = kubernetes
	p.found.looked = true
	return nil
}

// listComponents lists all components with their installed and declared versions.
func (p *planner) listComponents() {
	add := p.list
	add(TypeCertManager, TypeCertManager, p.mgmt.CertManager.Version)
	listed := releases.WithDefaults(components.DeclaredProviders(p.mgmt.Providers))
	for _, w := range listed {
		add(w.Name, string(w.Type), w.Version)
	}
	p.found.unlisted = unlistedIn(p.found.providers, listed)
	for _, i := range p.found.unlisted {
		add(i.Name, string(i.Type), "")
	}
	add(TypeFlux, TypeFlux, p.fleet.Spec.Flux.Version)
	add(TypeKubernetes, TypeKubernetes, p.declaredKubernetes())
}

// list adds a component to the plan.
func (p *planner) list(name, of, declared string) {
	p.plan.Components = append(p.plan.Components, Component{
		Name: name, Type: of, Installed: p.versions[of+"/"+name], Declared: declared,
		Against: []string{}, Restarts: []string{}, Converts: []string{}, Replaces: []string{},
	})
}

// lookAtReleases finds out, side by side, the available versions of each component, and what the declared version would
// change.
func (p *planner) lookAtReleases(ctx context.Context) {
	var group errgroup.Group
	for i := range p.plan.Components {
		c := &p.plan.Components[i]
		group.Go(func() error {
			if err := p.judge(ctx, c); err != nil {
				c.Unread = c.Newest == "" && c.Note == ""
				p.unknownRelease(c, err)
			}
			return nil
		})
	}
	_ = group.Wait() // Unknown has the error
}

func (p *planner) judge(ctx context.Context, c *Component) error {
	unasked := p.o.Offline && p.o.Bundle == ""
	switch c.Type {
	case TypeFeature:
		if c.Unread = unasked; unasked {
			p.noteFeatureChange(c)
			return nil
		}
		return p.judgeFeature(ctx, c)
	case TypeKubernetes:
		p.judgeKubernetes(c)
		return nil
	case TypeFlux:
		c.Newest = p.reader.FluxVersion()
		if c.Changes() {
			c.Restarts = append(c.Restarts, p.fleet.Spec.Flux.Components...)
			c.Note = "its manifests in the repo change with it"
		}
		return nil
	case TypeCertManager:
		return p.judgeCertManager(c) //nolint:contextcheck // it asks nobody
	}
	if p.isUnlisted(c) { // nobody knows where its releases are, and no command changes it
		return nil
	}
	if c.Unread = unasked; unasked {
		if c.Changes() {
			c.Against = append(c.Against, against(c)...)
		}
		return nil
	}
	return p.judgeProvider(ctx, c)
}

func (p *planner) judgeCertManager(c *Component) error {
	if p.foreign {
		c.Note = "somebody else has installed it, and fleetctl leaves it alone"
		c.Declared = ""
		return nil
	}
	newest, err := p.reader.NewestCertManager(p.mgmt.CertManager)
	if err != nil {
		return err
	}
	c.Newest = newest
	if c.Changes() {
		c.Against = append(c.Against, against(c)...)
		c.Restarts = append(c.Restarts, "cert-manager", "cert-manager-cainjector", "cert-manager-webhook")
	}
	return nil
}

// against lists the reasons against the step from the installed version to the declared one.
func against(c *Component) []string {
	provider := releases.Provider{Name: c.Name, Type: releases.ProviderType(c.Type)}
	step := releases.Upgrade{Provider: provider, From: c.Installed}
	step.Version = c.Declared
	if c.Type == TypeCertManager {
		step.Type = ""
	}
	if err := releases.CheckUpgrade(step); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func (p *planner) judgeProvider(ctx context.Context, c *Component) error {
	provider := releases.Provider{Name: c.Name, Type: releases.ProviderType(c.Type)}
	found, err := p.source.NewestThatFits(ctx, provider, c.Installed, c.Declared)
	if err != nil {
		return err
	}
	nameNewest(c, found)
	if c.Declared == "" {
		return nil
	}
	provider.Version = c.Declared
	release, err := p.source.Release(ctx, provider)
	if errors.Is(err, releases.ErrOtherVersions) && c.Outdated() { // this bundle is for the newer one
		c.note("the bundle does not have " + c.Declared)
		return nil
	}
	if err != nil {
		return err
	}
	c.Contract = release.Contract
	if !release.Fits {
		c.Against = append(c.Against, fmt.Sprintf("it implements the Cluster API contract %s, which this fleetctl does not support", c.Contract))
	}
	if !c.Changes() {
		return nil
	}
	c.Against = append(c.Against, against(c)...)
	c.Restarts = append(c.Restarts, release.Deployments...)
	for crd, version := range release.Stores {
		if was := p.stored[crd]; was != "" && was != version {
			c.Converts = append(c.Converts, fmt.Sprintf("%s: %s to %s", crd, was, version))
		}
	}
	slices.Sort(c.Converts)
	return nil
}

// nameNewest names the newest version that fits. If a newer one does not, a note says why.
func nameNewest(c *Component, found *releases.Newest) {
	c.Newest = found.Version
	if found.Newer != "" {
		c.note(fmt.Sprintf("%s is available, and %s", found.Newer, found.Why))
	}
}
