package v1alpha1

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// LockKind is the kind of every fleet.lock. LockFileName is the name of the file, beside fleet.yaml.
const (
	LockKind     = "FleetLock"
	LockFileName = "fleet.lock"
)

// Lock has the digests of everything that is installed, so that all clusters run what was reviewed.
type Lock struct {
	// APIVersion is fleetctl.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is FleetLock.
	Kind string `json:"kind"`
	// Components of the providers, Flux and cert-manager, sorted by type and name.
	Components []LockedComponent `json:"components,omitempty"`
	// Images of the components, sorted by name. A lock of an older fleetctl has none.
	Images []LockedImage `json:"images,omitempty"`
	// Charts in charts/, sorted by name.
	Charts []LockedChart `json:"charts,omitempty"`
	// Features are the charts of features, sorted by name. A lock of an older fleetctl has none.
	Features []LockedFeature `json:"features,omitempty"`
}

// ComponentType is the type of a component in the lock: a ProviderType, or one of the types below.
type ComponentType string

// The types of components that are not providers.
const (
	ComponentFlux        ComponentType = "flux"
	ComponentCertManager ComponentType = "cert-manager"
)

// LockedComponent is an installed manifest as released, before variables are filled in.
type LockedComponent struct {
	// Name in fleet.yaml.
	Name string `json:"name"`
	// Type of the provider, or flux or cert-manager.
	Type ComponentType `json:"type"`
	// Version that is installed.
	Version string `json:"version"`
	// URL of the component in fleet.yaml. Empty means the component's own releases.
	URL string `json:"url,omitempty"`
	// SHA256 of the manifest, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Bundle means that the manifest was read from an offline bundle, whose bytes may differ from the release's.
	Bundle bool `json:"bundle,omitempty"`
}

// String returns for example "infrastructure provider aws v2.13.0", or "flux v2.9.5".
func (c LockedComponent) String() string {
	if string(c.Type) == c.Name {
		return c.Name + " " + c.Version
	}
	return fmt.Sprintf("%s provider %s %s", c.Type, c.Name, c.Version)
}

// LockedChart is a chart of the fleet repo when fleetctl last updated it.
type LockedChart struct {
	// Name of the flavour and of its folder in charts/.
	Name string `json:"name"`
	// Fleetctl is the version of fleetctl that the chart comes from. It is empty for a chart that was changed, or that is the team's own.
	Fleetctl string `json:"fleetctl,omitempty"`
	// SHA256 of its files, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// LoadLock reads and decodes the fleet.lock at path. The error is os.ErrNotExist if there is no such file, another error of reading, or an
// error of DecodeLock.
func LoadLock(path string) (*Lock, error) {
	// One more byte, so that DecodeLock sees a file that is too long.
	content, err := within.Start(filepath.Dir(path), filepath.Base(path), maxBytes+1)
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	return DecodeLock(path, content)
}

// DecodeLock decodes content strictly, as Decode does for fleet.yaml.
func DecodeLock(filename string, content []byte) (*Lock, error) {
	src := &source{file: filename, positions: map[string]position{"": {1, 1}}}
	root, finding := parse(content)
	if finding != nil {
		finding.File = filename
		if finding.Summary == "file is empty" {
			finding.Hint = "`fleetctl lock` writes it"
		}
		return nil, diag.Findings{*finding}
	}
	v := &validator{collector: collector{source: src}}
	c := &v.collector
	if checkTypeMeta(c, root, LockKind); len(c.findings) > 0 {
		return nil, c.sorted()
	}
	lock := &Lock{}
	d := &decoder{collector: c, budget: maxNodes, broken: map[string]bool{}}
	v.broken = d.isBroken
	d.decode(root, lock)
	if !d.exhausted() {
		v.required(reflect.ValueOf(lock).Elem(), "")
		v.lock(lock)
	}
	if err := c.sorted().Err(); err != nil {
		return nil, err
	}
	return lock, nil
}

var sha256Digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// lock checks the rules that the types cannot express.
func (v *validator) lock(l *Lock) {
	for i, c := range l.Components {
		v.digest(fieldPath(itemPath("components", i), "sha256"), c.SHA256)
	}
	for i, c := range l.Charts {
		v.digest(fieldPath(itemPath("charts", i), "sha256"), c.SHA256)
	}
	uniqueInLock(v, l.Components, "components", "component", func(c LockedComponent) string {
		return strings.TrimSpace(c.String() + " " + c.URL)
	})
	uniqueInLock(v, l.Charts, "charts", "chart", func(c LockedChart) string { return c.Name })
	v.lockedImages(l.Images)
	v.lockedFeatures(l.Features)
}

// uniqueInLock is unique for a list of fleet.lock: it gives the hint to write the file again.
func uniqueInLock[T any](v *validator, items []T, list, what string, key func(T) string) {
	uniqueOr(v, "`fleetctl lock` writes it again", items, func(i int) string { return itemPath(list, i) }, what, key)
}

func (v *validator) digest(path, value string) {
	if value != "" && !sha256Digest.MatchString(value) {
		v.errorf(RuleValue, path, "`fleetctl lock` writes it", "not a SHA-256 digest: 64 hexadecimal digits")
	}
}

// Find returns the component of that type, name, version and URL, or nil.
func (l *Lock) Find(wanted LockedComponent) *LockedComponent {
	for i := range l.Components {
		if c := &l.Components[i]; c.Type == wanted.Type && c.Name == wanted.Name && c.Version == wanted.Version && c.URL == wanted.URL {
			return c
		}
	}
	return nil
}

// Add replaces the component of the same type, name, version and URL, or adds c.
func (l *Lock) Add(c LockedComponent) {
	if have := l.Find(c); have != nil {
		*have = c
		return
	}
	l.Components = append(l.Components, c)
}

const lockHeader = `# Digests of what this fleet installs, and of the charts of its clusters. fleetctl writes this file; ` +
	"`fleetctl lock`" + `
# writes new digests. A component or an image with another digest is not installed. Review changes of this file like changes of code.
apiVersion: ` + APIVersion + `
kind: ` + LockKind + `
`

// MarshalLock encodes a lock, sorted. DecodeLock decodes the same lock from the result.
func MarshalLock(l *Lock) ([]byte, error) {
	sorted := Lock{
		Components: slices.Clone(l.Components), Images: slices.Clone(l.Images), Charts: slices.Clone(l.Charts),
		Features: slices.Clone(l.Features),
	}
	slices.SortFunc(sorted.Components, func(a, b LockedComponent) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.URL, b.URL))
	})
	slices.SortFunc(sorted.Images, func(a, b LockedImage) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sorted.Charts, func(a, b LockedChart) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sorted.Features, func(a, b LockedFeature) int { return cmp.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(lockHeader)
	for _, part := range []struct {
		name  string
		value reflect.Value
	}{
		{"components", reflect.ValueOf(sorted.Components)},
		{"images", reflect.ValueOf(sorted.Images)},
		{"charts", reflect.ValueOf(sorted.Charts)},
		{"features", reflect.ValueOf(sorted.Features)},
	} {
		if isEmpty(part.value) {
			continue
		}
		if err := writeField(&b, part.name, part.value, 0); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

// Verify compares the digest of a component with its digest in the lock. It returns an error with a *DigestError if they differ. It returns
// nil if l is nil, or if the lock does not list the component.
func (l *Lock) Verify(read LockedComponent) error {
	if l == nil {
		return nil
	}
	locked := l.Find(read)
	if locked == nil || locked.SHA256 == read.SHA256 {
		return nil
	}
	return diag.Wrap("", &DigestError{Component: read, Locked: locked.SHA256},
		"the release of that version has changed: find out who changed it and why. If the change is right, write the new digest with "+
			"`fleetctl lock`, and let somebody review it")
}

// DigestError means that a component has another digest than in the lock.
type DigestError struct {
	Component LockedComponent // the component with the digest that was found
	Locked    string          // the digest in the lock
}

// Error names the component and both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s does not match %s: its SHA-256 is %s, but the lock has %s", e.Component, LockFileName, e.Component.SHA256, e.Locked)
}
