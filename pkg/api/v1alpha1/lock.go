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

// LockKind is the kind of every fleet.lock; LockFileName is where it stands, beside fleet.yaml.
const (
	LockKind     = "FleetLock"
	LockFileName = "fleet.lock"
)

// Lock holds the digests of everything that is installed: what was reviewed once is what runs everywhere.
type Lock struct {
	// APIVersion is fleetctl.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is FleetLock.
	Kind string `json:"kind"`
	// Components are those of the providers, of Flux and of cert-manager, by type and name.
	Components []LockedComponent `json:"components,omitempty"`
	// Images are those that the components run, by name. A lock of an older fleetctl has none.
	Images []LockedImage `json:"images,omitempty"`
	// Charts are those in charts/, by name.
	Charts []LockedChart `json:"charts,omitempty"`
}

// ComponentType says what a component of the lock is: a ProviderType, or one of those below.
type ComponentType string

// The types of components that are no providers.
const (
	ComponentFlux        ComponentType = "flux"
	ComponentCertManager ComponentType = "cert-manager"
)

// LockedComponent is a manifest that is installed, as it was released: variables are not filled in.
type LockedComponent struct {
	// Name as fleet.yaml has it.
	Name string `json:"name"`
	// Type is that of the provider, or flux or cert-manager.
	Type ComponentType `json:"type"`
	// Version that is installed.
	Version string `json:"version"`
	// URL that fleet.yaml gives for it; empty: its own releases.
	URL string `json:"url,omitempty"`
	// SHA256 of the manifest, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Bundle tells that it was read from an offline bundle. What a bundle is built of need not have the bytes of the release.
	Bundle bool `json:"bundle,omitempty"`
}

// String is "infrastructure aws v2.13.0".
func (c LockedComponent) String() string {
	if string(c.Type) == c.Name {
		return c.Name + " " + c.Version
	}
	return fmt.Sprintf("%s provider %s %s", c.Type, c.Name, c.Version)
}

// LockedChart is a chart of the fleet repo as it was when it was last brought along.
type LockedChart struct {
	// Name of the flavour and of its folder in charts/.
	Name string `json:"name"`
	// Fleetctl is the version of fleetctl whose chart it is; empty: the chart was changed, or is the team's own.
	Fleetctl string `json:"fleetctl,omitempty"`
	// SHA256 of its files, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// LoadLock reads the fleet.lock at path. Errors are those of DecodeLock, or say that the file cannot be read: errors.Is knows
// os.ErrNotExist.
func LoadLock(path string) (*Lock, error) {
	content, err := within.ReadFile(filepath.Dir(path), filepath.Base(path), maxBytes+1) // one more, so that DecodeLock sees what is too long
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	return DecodeLock(path, content)
}

// DecodeLock reads content strictly, as Decode does it for fleet.yaml.
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

// lock checks what the types cannot say.
func (v *validator) lock(l *Lock) {
	seen := map[[4]string]bool{}
	for i, c := range l.Components {
		at := itemPath("components", i)
		v.digest(fieldPath(at, "sha256"), c.SHA256)
		key := [4]string{string(c.Type), c.Name, c.Version, c.URL}
		if seen[key] {
			v.errorf(RuleDuplicate, at, "`fleetctl lock` writes it anew", "%s is there twice", c)
		}
		seen[key] = true
	}
	v.lockedImages(l.Images)
	charts := map[string]bool{}
	for i, c := range l.Charts {
		at := itemPath("charts", i)
		v.digest(fieldPath(at, "sha256"), c.SHA256)
		if charts[c.Name] {
			v.errorf(RuleDuplicate, at, "`fleetctl lock` writes it anew", "chart %s is there twice", c.Name)
		}
		charts[c.Name] = true
	}
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

// Add puts a component in the place of the one of the same type, name, version and URL, or adds it.
func (l *Lock) Add(c LockedComponent) {
	if have := l.Find(c); have != nil {
		*have = c
		return
	}
	l.Components = append(l.Components, c)
}

const lockHeader = `# Digests of what this fleet installs, and of the charts that its clusters are made of. fleetctl writes this file, ` + "`fleetctl lock`" + `
# anew; a component or an image whose digest is another one is not installed. Review a change of it as you review a change of code.
apiVersion: ` + APIVersion + `
kind: ` + LockKind + `
`

// MarshalLock writes a lock, sorted. DecodeLock reads the same from it. Errors are those of encoding.
func MarshalLock(l *Lock) ([]byte, error) {
	sorted := Lock{Components: slices.Clone(l.Components), Images: slices.Clone(l.Images), Charts: slices.Clone(l.Charts)}
	slices.SortFunc(sorted.Components, func(a, b LockedComponent) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.URL, b.URL))
	})
	slices.SortFunc(sorted.Images, func(a, b LockedImage) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sorted.Charts, func(a, b LockedChart) int { return cmp.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(lockHeader)
	for _, part := range []struct {
		name  string
		value reflect.Value
	}{{"components", reflect.ValueOf(sorted.Components)}, {"images", reflect.ValueOf(sorted.Images)}, {"charts", reflect.ValueOf(sorted.Charts)}} {
		if isEmpty(part.value) {
			continue
		}
		if err := writeField(&b, part.name, part.value, 0); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

// Verify compares what a lock says of a component with what was read. It returns nil where there is no lock or it does not know the
// component, and a *DigestError where the digests differ.
func (l *Lock) Verify(read LockedComponent) error {
	if l == nil {
		return nil
	}
	locked := l.Find(read)
	if locked == nil || locked.SHA256 == read.SHA256 {
		return nil
	}
	return diag.Wrap("", &DigestError{Component: read, Locked: locked.SHA256},
		"somebody has changed what is released as that version: find out who and why. If it is right, `fleetctl lock` writes the new digest, for review")
}

// DigestError says that a component is another one than the lock knows.
type DigestError struct {
	Component LockedComponent // as it was read
	Locked    string          // the digest in the lock
}

// Error names the component and both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s is not what %s knows: its SHA-256 is %s, locked is %s", e.Component, LockFileName, e.Component.SHA256, e.Locked)
}
