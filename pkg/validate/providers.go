package validate

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// callCRDs is the question of the confined process, which has no network, to the process that started it.
const (
	callCRDs = "crds"
	// callBundled is the question which providers the bundle has.
	callBundled = "bundled"
)

// provided is the answer to callCRDs.
type provided struct {
	CRDs []byte
	// Failed says why the answer has no CRDs. Mismatch is the error if the CRDs are not those of fleet.lock.
	Failed, Hint string
	Mismatch     *v1alpha1.DigestError
}

// askCRDs returns the CRDs of a provider of fleet.yaml.
func askCRDs(ctx context.Context, wanted v1alpha1.LockedComponent) ([]byte, error) {
	var question bytes.Buffer
	if err := gob.NewEncoder(&question).Encode(wanted); err != nil {
		return nil, err
	}
	text, err := confine.Call(ctx, callCRDs, question.Bytes())
	if err != nil {
		return nil, err
	}
	var p provided
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&p); err != nil {
		return nil, err
	}
	switch {
	case p.Mismatch != nil:
		return nil, &diag.Error{Err: p.Mismatch, Hint: p.Hint}
	case p.Failed != "":
		return nil, &diag.Error{Err: errors.New(p.Failed), Hint: p.Hint}
	}
	return p.CRDs, nil
}

// askBundled returns the providers whose CRDs are in the bundle. Without a bundle it returns none.
func (r *run) askBundled(ctx context.Context) ([]v1alpha1.LockedComponent, error) {
	if r.opts.Bundle == "" {
		return nil, nil
	}
	text, err := confine.Call(ctx, callBundled, nil)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.LockedComponent
	return out, gob.NewDecoder(bytes.NewReader(text)).Decode(&out)
}

// provider answers the questions of the confined process.
type provider struct {
	opts Options
	dir  string
	// charts returns the charts of the repo's features. It reads them once.
	charts func() ([]v1alpha1.LockedFeature, error)

	mu     sync.Mutex
	reader *components.Reader
}

// newProvider returns the provider for the fleet repo in dir.
func newProvider(o Options, dir string) *provider {
	return &provider{opts: o, dir: dir, charts: sync.OnceValues(fleetrepo.New(dir, &v1alpha1.Fleet{}).FeatureCharts)}
}

// bundled answers callBundled.
func (p *provider) bundled(ctx context.Context, _ []byte) ([]byte, error) {
	reader, err := p.components(ctx)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = gob.NewEncoder(&text).Encode(reader.Bundled())
	return text.Bytes(), err
}

// answer answers callCRDs. It gives only the CRDs of providers that fleet.yaml names, or without a fleet.yaml those of providers in the
// bundle. It fetches nothing else, because the confined process may have been taken over.
func (p *provider) answer(ctx context.Context, question []byte) ([]byte, error) {
	var wanted v1alpha1.LockedComponent
	if err := gob.NewDecoder(bytes.NewReader(question)).Decode(&wanted); err != nil {
		return nil, err
	}
	var out provided
	var err error
	if out.CRDs, err = p.crds(ctx, wanted); err != nil {
		out.Failed, out.Hint = err.Error(), diag.Hint(err)
		out.Mismatch, _ = errors.AsType[*v1alpha1.DigestError](err)
	}
	var text bytes.Buffer
	err = gob.NewEncoder(&text).Encode(out)
	return text.Bytes(), err
}

func (p *provider) crds(ctx context.Context, wanted v1alpha1.LockedComponent) ([]byte, error) {
	fleet, lock, err := p.declared()
	if err != nil {
		return nil, err
	}
	if err := p.mayRead(ctx, fleet, wanted); err != nil {
		return nil, err
	}
	if wanted.Version == "" {
		if wanted.Version, err = p.bundledVersion(ctx, wanted); err != nil {
			return nil, err
		}
	}
	keep := components.CRDs{Dir: filepath.Join(p.opts.CacheDir, "crds"), Only: schema.OnlyCRDs}
	if p.opts.CacheDir != "" {
		if kept, err := keep.Kept(wanted, lock); err != nil || kept != nil {
			return kept, err
		}
	}
	if v1alpha1.IsLocalURL(wanted.URL) && !p.opts.LocalReleases {
		return nil, errors.New("its url is a place of this machine, which is read with --local-releases alone")
	}
	reader, err := p.components(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return keep.Fetch(ctx, reader, wanted, lock)
}

// errNoVersion is the error for a provider whose version nobody has chosen yet.
var errNoVersion = errors.New("fleet.yaml names no version")

// bundledVersion is the version of a provider that `fleetctl init` would choose from the bundle. Errors: no bundle, or one without the
// provider.
func (p *provider) bundledVersion(ctx context.Context, wanted v1alpha1.LockedComponent) (string, error) {
	if p.opts.Bundle == "" {
		return "", errNoVersion
	}
	reader, err := p.components(ctx)
	if err != nil {
		return "", err
	}
	for _, there := range reader.Bundled() {
		if there.Name == wanted.Name && there.Type == wanted.Type {
			return there.Version, nil
		}
	}
	return "", errNoVersion
}

// mayRead returns an error for a provider that fleet.yaml does not name. Without a fleet.yaml, it returns an error for a provider that the
// bundle does not have.
func (p *provider) mayRead(ctx context.Context, fleet *v1alpha1.Fleet, wanted v1alpha1.LockedComponent) error {
	if fleet != nil {
		if !slices.Contains(components.Providers(fleet), wanted) {
			return fmt.Errorf("fleet.yaml does not name %s", wanted)
		}
		return nil
	}
	reader, err := p.components(ctx)
	if err == nil && !slices.Contains(reader.Bundled(), wanted) {
		err = fmt.Errorf("the bundle has no %s", wanted)
	}
	return err
}

// declared reads fleet.yaml and fleet.lock. A missing file is nil, and so is a fleet.lock that cannot be read, which is a finding of its
// own.
func (p *provider) declared() (*v1alpha1.Fleet, *v1alpha1.Lock, error) {
	fleet, err := v1alpha1.Load(filepath.Join(p.dir, v1alpha1.FileName))
	if errors.Is(err, fs.ErrNotExist) && p.opts.Bundle != "" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	lock, err := v1alpha1.LoadLock(filepath.Join(p.dir, v1alpha1.LockFileName))
	if err != nil {
		return fleet, nil, nil //nolint:nilerr // it is missing, or another finding reports it
	}
	return fleet, lock, nil
}

// components returns the reader of this run. The first call makes it, because it may have to unpack a bundle.
func (p *provider) components(ctx context.Context) (*components.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != nil {
		return p.reader, nil
	}
	if p.opts.Offline && p.opts.Bundle == "" {
		return nil, errors.New("it was not fetched earlier (--offline)")
	}
	reader, err := components.Open(ctx, p.opts.Bundle, p.opts.CacheDir)
	if err != nil {
		return nil, err
	}
	p.reader = reader
	return reader, nil
}

// close removes temporary files.
func (p *provider) close() {
	if p.reader != nil {
		_ = p.reader.Close() // they are temporary
	}
}
