package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// fetchTimeout bounds how long the components of one provider are waited for.
const fetchTimeout = time.Minute

// schemas is what is known of kinds.
type schemas struct {
	*schema.Set
	// missing are the providers whose CRDs are not available: kinds that may be theirs are not reported one by one.
	missing  []v1alpha1.LockedComponent
	findings diag.Findings
	// tree has the CRDs that stand in the repo; nil where there are none.
	tree *tree
	// kubernetes are the versions of clusters, as far as the repo says.
	kubernetes map[place]string
}

// kubernetesOf is the version of Kubernetes that an object is applied to; "" where the repo does not say.
func (s *schemas) kubernetesOf(o *object) string { return s.kubernetes[o.places()[0]] }

// versionsOf returns the Kubernetes versions of clusters: from their values, or from their objects if the repo holds them as manifests.
func (r *run) versionsOf(clusters []*cluster) map[place]string {
	out := map[place]string{}
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		out[place{mgmt: m.Name}] = m.KubernetesVersion
	}
	for _, c := range clusters {
		if c.declared != nil {
			out[place{c.mgmt.Name, c.name}] = c.declared.KubernetesVersion
		}
	}
	for _, o := range r.rendered.Objects {
		control := strings.HasSuffix(o.Kind, "ControlPlane")
		if len(o.Targets) > 0 || o.Cluster == "" || o.Environment != "" || !control && !isManifestCluster(o) {
			continue
		}
		var says map[string]any
		if json.Unmarshal(o.JSON, &says) != nil {
			continue
		}
		at := place{o.ManagementCluster, o.Cluster}
		out[at] = cmp.Or(mapping.Fields(says).Text("spec", "topology", "version"), mapping.Fields(says).Text("spec", "version"), out[at])
	}
	return out
}

// readSchemas gathers the CRDs of kinds: from --crds and from the repo, which includes Flux's. For kinds that are still missing it reads
// the providers of fleet.yaml, in the versions and with the digests of fleet.lock.
func (r *run) readSchemas(ctx context.Context, kinds map[kschema.GroupVersionKind]bool) (*schemas, error) {
	s := newSchemas(r.opts.known)
	for _, dir := range r.opts.CRDs {
		if err := s.addFolder(dir); err != nil {
			return nil, err
		}
	}
	s.addDeclared(r)
	s.addMade(r.tree, r.rendered.Objects)
	s.addTree(r.tree)
	wanted := components.Providers(r.fleet)
	if r.assumed { // nothing says which providers there are: what the bundle has is the nearest
		var err error
		if wanted, err = r.askBundled(ctx); err != nil {
			return nil, err
		}
	}
	s.addProviders(ctx, r, slices.DeleteFunc(wanted, func(p v1alpha1.LockedComponent) bool { return !s.needs(p, kinds) }))
	return s, nil
}

// newSchemas knows the kinds of Kubernetes, and the kinds of known; nil: none.
func newSchemas(known *schema.Set) *schemas {
	if known == nil {
		return &schemas{Set: schema.NewSet()}
	}
	return &schemas{Set: known.Clone()}
}

// addTree takes the CRDs that stand in the repo. Those in what is left out, which may be there to be wrong, win over no others.
func (s *schemas) addTree(t *tree) {
	s.tree = t
	files := slices.Clone(t.files)
	slices.SortStableFunc(files, func(a, b *file) int {
		switch {
		case a.excluded == b.excluded:
			return 0
		case b.excluded:
			return -1
		}
		return 1
	})
	for _, f := range files {
		if f.documents == nil || !bytes.Contains(f.content, []byte("CustomResourceDefinition")) {
			continue
		}
		if _, err := s.Add(f.path, f.content); err != nil {
			s.findings = append(s.findings, finding(RuleBadCRD, f.path, 1, 0, err.Error(), ""))
		}
	}
}

// addMade takes the CRDs that are applied, as they are applied: kustomize takes a plain y for a text, other readers of YAML take it for
// true, charts make CRDs by templates, and patches change them.
func (s *schemas) addMade(t *tree, all []*render.Object) {
	seen := map[string]bool{}
	for _, o := range all {
		origin := cmp.Or(o.Template, o.Source.File)
		if o.Kind != "CustomResourceDefinition" || seen[origin+" "+o.Name] {
			continue
		}
		seen[origin+" "+o.Name] = true
		if s.AddObject(origin, o.JSON) {
			continue
		}
		if f := t.byPath[origin]; f != nil && f.documents != nil { // addTree says what is wrong
			continue
		}
		if _, err := s.Add(origin, o.JSON); err != nil {
			s.findings = append(s.findings, finding(RuleBadCRD, o.Source.File, o.Source.Line, 0, err.Error(), ""))
		}
	}
}

// broken reports a CRD that no API server takes, which an object was to be judged by: where the CRD stands, so that it is told once however
// many objects there are; at the object where the CRD is not in the repo.
func (s *schemas) broken(o *object, err error) diag.Finding {
	crd, ok := errors.AsType[*schema.BrokenError](err)
	rule, hint := RuleBadCRD, "an API server refuses it, and then has no such objects"
	if ok && crd.Unread {
		rule, hint = RuleLimit, "objects of the kind are not judged"
	}
	if !ok || s.tree == nil || s.tree.byPath[crd.Origin] == nil {
		return o.at("", rule, err.Error(), "")
	}
	at := finding(rule, crd.Origin, 1, 0, err.Error(), hint)
	for _, d := range s.tree.byPath[crd.Origin].documents {
		if says := mapping.Fields(d.object); kindOf(d) == "CustomResourceDefinition" && says.Text("metadata", "name") == crd.Name {
			at.Line, at.Column = d.node.Line, d.node.Column
			break
		}
	}
	return at
}

// refusedCRD reports a CRD that no API server takes, whether there are objects of its kind or not.
func (s *schemas) refusedCRD(ctx context.Context, o *object, content map[string]any) diag.Findings {
	if o.Kind != "CustomResourceDefinition" {
		return nil
	}
	if err := schema.CheckCRD(ctx, cmp.Or(o.Template, o.Source.File), content); err != nil {
		return diag.Findings{s.broken(o, err)}
	}
	return nil
}

// addFolder takes the CRDs below a folder of the user's, or of one file.
func (s *schemas) addFolder(name string) error {
	found, err := s.addBelow(name)
	if err != nil {
		return diag.Wrap("read the CRDs in "+name, err, "--crds takes folders and files with CustomResourceDefinitions")
	}
	if found == 0 {
		return diag.Usage("--crds takes folders and files with CustomResourceDefinitions", "there is no CRD in %s", name)
	}
	return nil
}

// maxCRDs bounds a file with CRDs, which may hold those of many providers.
const maxCRDs = 64 << 20

// addBelow takes the CRDs in a file, or below a folder, and returns how many there are. A file is opened by its own name: the confined
// process may read what --crds names, and not the folder that a file of --crds lies in.
func (s *schemas) addBelow(name string) (found int, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if !info.IsDir() {
		content, err := within.Named(name, maxCRDs)
		if err != nil {
			return 0, err
		}
		return s.Add(filepath.ToSlash(name), content)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isYAML(file) {
			return err
		}
		content, err := within.Read(root, filepath.ToSlash(file), maxCRDs+1)
		if err != nil {
			return err
		}
		if len(content) > maxCRDs {
			return fmt.Errorf("%s is larger than %d MiB", file, maxCRDs>>20)
		}
		n, err := s.Add(path.Join(filepath.ToSlash(name), file), content)
		found += n
		return err
	})
	return found, err
}

// addProviders takes the CRDs of providers, fetched once and kept. One whose CRDs are not to be had is a warning, and all other rules hold.
func (s *schemas) addProviders(ctx context.Context, r *run, wanted []v1alpha1.LockedComponent) {
	found, errs := make([][]byte, len(wanted)), make([]error, len(wanted))
	var group errgroup.Group
	group.SetLimit(16) // most of it is waiting, for a network that may not be there
	for i, w := range wanted {
		group.Go(func() error {
			found[i], errs[i] = askCRDs(ctx, w)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	for i, w := range wanted {
		if errs[i] == nil {
			_, errs[i] = s.Add(w.String(), found[i])
		}
		if errs[i] != nil {
			s.unavailable(r, w, errs[i])
		}
	}
}

// unavailable reports a provider whose CRDs are not to be had.
func (s *schemas) unavailable(r *run, wanted v1alpha1.LockedComponent, err error) {
	s.missing = append(s.missing, wanted)
	if mismatch, ok := errors.AsType[*v1alpha1.DigestError](err); ok {
		s.findings = append(s.findings, diag.Finding{
			Severity: diag.SeverityError, Rule: RuleLock, File: v1alpha1.LockFileName, Line: r.lockLine(wanted),
			Summary: mismatch.Error(), Hint: diag.Hint(err),
		})
		return
	}
	s.findings = append(s.findings, finding(RuleMissingCRDs, v1alpha1.FileName, r.providerLine(wanted), 0,
		fmt.Sprintf("the CRDs of the %s provider %s are not available, so its objects are not checked: %s", wanted.Type, wanted.Name,
			firstLine(err.Error())),
		"run it once with a network, or give --bundle, or --crds with a folder of CRDs"))
}

// needs tells whether there are objects of kinds that nothing is known of and that may be a provider's.
func (s *schemas) needs(p v1alpha1.LockedComponent, kinds map[kschema.GroupVersionKind]bool) bool {
	for k := range kinds {
		if !s.Knows(k.Group, k.Kind) && mayBeOf(p, k) {
			return true
		}
	}
	return false
}

// kindsOf are how the kinds of the well-known providers begin, or their group.
var kindsOf = map[string][]string{
	"aws": {"AWS", "ROSA", "EKS", "Nodeadm"}, "azure": {"Azure", "ASO", ".azure.com"}, "gcp": {"GCP"}, "vsphere": {"VSphere"},
	"docker": {"Docker", "Dev", "InMemory"},
}

// mayBeOf tells whether a kind may be one that a provider brings along.
func mayBeOf(p v1alpha1.LockedComponent, k kschema.GroupVersionKind) bool {
	if !isProviders(k.Group) {
		return false
	}
	if k.Group == "cluster.x-k8s.io" {
		return v1alpha1.ProviderType(p.Type) == v1alpha1.ProviderCore
	}
	what, _, _ := strings.Cut(k.Group, ".")
	begins := kindsOf[p.Name]
	if p.Name == v1alpha1.KubeadmProviderName {
		begins = []string{"Kubeadm"}
	}
	known := len(begins) == 0 || slices.ContainsFunc(begins,
		func(b string) bool { return strings.HasPrefix(k.Kind, b) || strings.HasSuffix(k.Group, b) })
	switch v1alpha1.ProviderType(p.Type) {
	case v1alpha1.ProviderCore:
		return what == "addons" || what == "ipam" || what == "runtime"
	case v1alpha1.ProviderBootstrap:
		return what == "bootstrap" && known
	case v1alpha1.ProviderControlPlane:
		return what == "controlplane" && known
	case v1alpha1.ProviderInfrastructure:
		return known // some bring their own control plane along
	case v1alpha1.ProviderIPAM, v1alpha1.ProviderAddon, v1alpha1.ProviderRuntimeExtension:
	}
	return true
}

// providerLine is where fleet.yaml names a provider; the first line where it is a default.
func (r *run) providerLine(wanted v1alpha1.LockedComponent) int {
	f := r.tree.byPath[v1alpha1.FileName]
	if f == nil || len(f.documents) == 0 {
		return 1
	}
	for i := range r.fleet.Spec.ManagementClusters {
		for j, p := range r.fleet.Spec.ManagementClusters[i].Providers {
			if p.Name != wanted.Name || string(p.Type) != string(wanted.Type) {
				continue
			}
			return locate(f.documents[0].node, fmt.Sprintf("spec.managementClusters[%d].providers[%d]", i, j)).Line
		}
	}
	return 1
}

// lockLine is where fleet.lock has a component.
func (r *run) lockLine(wanted v1alpha1.LockedComponent) int {
	f := r.tree.byPath[v1alpha1.LockFileName]
	if f == nil || len(f.documents) == 0 || r.lock == nil {
		return 1
	}
	i := slices.IndexFunc(r.lock.Components, func(c v1alpha1.LockedComponent) bool {
		return c.Type == wanted.Type && c.Name == wanted.Name
	})
	if i < 0 {
		return 1
	}
	return locate(f.documents[0].node, fmt.Sprintf("components[%d]", i)).Line
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
