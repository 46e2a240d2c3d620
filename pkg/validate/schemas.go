package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// fetchTimeout bounds how long the components of one provider are waited for.
const fetchTimeout = time.Minute

// schemas is what is known of kinds, and where it came from.
type schemas struct {
	*schema.Set
	// missing are providers whose CRDs are not at hand: kinds that may be theirs are not reported one by one.
	missing  bool
	findings diag.Findings
}

// readSchemas gathers the CRDs: those of --crds, those in the repo, Flux's among them, and those of the providers that fleet.yaml names, of
// the versions and digests in fleet.lock.
func (r *run) readSchemas(ctx context.Context) (*schemas, error) {
	s := &schemas{Set: schema.NewSet()}
	for _, dir := range r.opts.CRDs {
		if err := s.addFolder(dir); err != nil {
			return nil, err
		}
	}
	for _, f := range r.tree.files {
		if f.documents == nil || !bytes.Contains(f.content, []byte("CustomResourceDefinition")) {
			continue
		}
		if _, err := s.Add(f.path, f.content); err != nil {
			s.findings = append(s.findings, finding(RuleBadCRD, f.path, 1, 0, err.Error(), ""))
		}
	}
	if r.fleet != nil {
		s.addProviders(ctx, r)
	}
	return s, nil
}

// addFolder takes the CRDs below a folder of the user's, or of one file.
func (s *schemas) addFolder(dir string) error {
	found := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isYAML(filepath.ToSlash(name)) {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		n, err := s.Add(name, content)
		found += n
		return err
	})
	if err != nil {
		return diag.Wrap("read the CRDs in "+dir, err, "--crds takes folders and files with CustomResourceDefinitions")
	}
	if found == 0 {
		return diag.Usage("--crds takes folders and files with CustomResourceDefinitions", "there is no CRD in %s", dir)
	}
	return nil
}

// addProviders takes the CRDs of providers, fetched once and kept. One whose CRDs are not to be had is a warning, and all other rules hold.
func (s *schemas) addProviders(ctx context.Context, r *run) {
	wanted := components.Providers(r.fleet)
	found, errs := make([][]byte, len(wanted)), make([]error, len(wanted))
	keep := components.CRDs{Dir: filepath.Join(r.opts.CacheDir, "crds"), Only: schema.OnlyCRDs}
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0)) // most of it is waiting
	for i, w := range wanted {
		group.Go(func() error {
			found[i], errs[i] = r.providerCRDs(ctx, keep, w)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	for i, w := range wanted {
		if errs[i] == nil {
			_, errs[i] = s.Add(w.String(), found[i])
		}
		if errs[i] == nil {
			continue
		}
		if mismatch, ok := errors.AsType[*v1alpha1.DigestError](errs[i]); ok {
			s.findings = append(s.findings, diag.Finding{
				Severity: diag.SeverityError, Rule: RuleLock, File: v1alpha1.LockFileName, Line: r.lockLine(w), Summary: mismatch.Error(), Hint: diag.Hint(errs[i]),
			})
		}
		s.missing = true
		s.findings = append(s.findings, finding(RuleMissingCRDs, v1alpha1.FileName, r.providerLine(w), 0,
			fmt.Sprintf("the CRDs of the %s provider %s are not at hand, so its objects are not checked: %s", w.Type, w.Name, firstLine(errs[i].Error())),
			"run it once with a network, or give --bundle, or --crds with a folder of CRDs"))
	}
}

func (r *run) providerCRDs(ctx context.Context, keep components.CRDs, wanted v1alpha1.LockedComponent) ([]byte, error) {
	if wanted.Version == "" {
		return nil, errors.New("fleet.yaml names no version")
	}
	if r.opts.CacheDir != "" {
		if kept, err := keep.Kept(wanted, r.lock); err != nil || kept != nil {
			return kept, err
		}
	}
	reader, err := r.components(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return keep.Fetch(ctx, reader, wanted, r.lock)
}

// components is the reader of the run: it is made where the first provider needs it, since a bundle has to be unpacked.
func (r *run) components(ctx context.Context) (*components.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader != nil {
		return r.reader, nil
	}
	if r.opts.Offline && r.opts.Bundle == "" {
		return nil, errors.New("it was not fetched earlier (--offline)")
	}
	reader, err := components.Open(ctx, r.opts.Bundle, r.opts.CacheDir)
	if err != nil {
		return nil, err
	}
	r.reader = reader
	return reader, nil
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
