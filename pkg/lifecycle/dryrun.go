package lifecycle

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
)

// Plan is what Init would do.
type Plan struct {
	FormatVersion string     `json:"formatVersion"`
	Fleet         string     `json:"fleet"`
	Cluster       string     `json:"cluster"`
	Steps         []PlanStep `json:"steps"`
	// ManifestDir holds the manifests that would be applied and committed, and Manifests are their paths in it.
	ManifestDir string   `json:"manifestDir"`
	Manifests   []string `json:"manifests"`
	// Flux is what the Flux of an existing cluster follows now, if init would change that; nil if init changes nothing.
	Flux *following.Now `json:"flux,omitempty"`
	// FluxNotes name what may keep the Flux of an existing cluster from applying the fleet repo, or undo what it
	// applies.
	FluxNotes []following.Note `json:"fluxNotes,omitempty"`
	// Upgrades are the components of an existing cluster that init would bring to other versions, in this order.
	Upgrades []converge.Upgraded `json:"upgrades,omitempty"`
}

// PlanStep is a step and the steps it waits for.
type PlanStep struct {
	Name  string   `json:"name"`
	Needs []string `json:"needs"`
}

// placeholderURL stands in a dry run for the address of the fleet repo that only a running management cluster knows.
const placeholderURL = "https://fleetctl.invalid/fleet.git"

// DryRun lists Init's steps and writes, below dir, the manifests that Init would apply (apply/) and commit (repo/). It
// changes nothing else, and leaves Secrets out. For an existing cluster, the plan says what its Flux follows now, if
// Init would change that.
func DryRun(ctx context.Context, deps management.Deps, opts session.Options, dir string) (*Plan, error) {
	s, err := session.Read(ctx, deps, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Stranger != nil {
		return nil, s.Stranger
	}
	s.FindHost(ctx) // and do not ask a parent for a new kubeconfig, because that kubeconfig would be kept
	if err := standing.MustStand(ctx, s); err != nil {
		return nil, err
	}
	versions, err := resolve.Choose(ctx, s, func(string) {})
	if err != nil {
		return nil, err
	}
	manifests, err := resolve.Read(ctx, s, versions)
	if err != nil {
		return nil, err
	}
	if err := whatInitRefuses(ctx, s); err != nil {
		return nil, err
	}
	endpoint := &repoaccess.Endpoint{URL: s.Fleet.Spec.Git.URL, Display: s.Fleet.Spec.Git.URL}
	if endpoint.URL == "" {
		endpoint = &repoaccess.Endpoint{URL: placeholderURL, Display: s.Opts.Dir, Local: true}
	}
	endpoint.Credentials = flux.SourceCredentials{Username: "git", Password: "not written"}
	content := &repofiles.Content{Session: s, Endpoint: endpoint, Manifests: manifests}
	files, err := content.ManifestFiles(ctx)
	if err != nil {
		return nil, err
	}
	var set manifest.ChangeSet
	set.Write(files...)
	if _, err := set.Apply(dir); err != nil {
		return nil, err
	}
	plan := &Plan{FormatVersion: "1", Fleet: s.Fleet.Metadata.Name, Cluster: s.Mgmt.Name, ManifestDir: dir}
	if plan.Flux, plan.FluxNotes, err = standing.PlanFollowing(ctx, s, following.View{Flux: manifests.Flux}); err != nil {
		return nil, err
	}
	if plan.Upgrades, err = converge.PlanUpgrades(ctx, s, versions); err != nil {
		return nil, diag.Wrap("look at what is installed", err, "")
	}
	for _, f := range set.Files() {
		plan.Manifests = append(plan.Manifests, f.Path)
	}
	for _, step := range converge.NewRun(s).Steps() {
		plan.Steps = append(plan.Steps, PlanStep{Name: step.Name, Needs: append([]string{}, step.Needs...)})
	}
	return plan, nil
}

// whatInitRefuses returns the error with which Init would refuse to begin. It makes no preflight checks, because doctor makes them.
func whatInitRefuses(ctx context.Context, s *session.Session) error {
	if err := standing.Refuse(ctx, s); err != nil {
		return err
	}
	if err := standing.RefusePublished(ctx, s); err != nil {
		return err
	}
	there, err := standing.ForDryRun(ctx, s)
	if err != nil {
		return err
	}
	if there != nil {
		if err := s.CheckClaim(there.Claim); err != nil {
			return err
		}
		if err := standing.RefuseAt(ctx, s, there.Client); err != nil {
			return err
		}
	}
	return checkAuthor(ctx, s)
}
