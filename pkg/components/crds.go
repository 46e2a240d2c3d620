package components

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// CRDs keeps the CRDs of providers, so that they are fetched once.
type CRDs struct {
	// Dir they are kept in.
	Dir string
	// Only picks the CRDs out of a manifest.
	Only func(manifest []byte) []byte
}

// digestLine begins what is kept: the digest is that of the whole manifest.
const digestLine = "# sha256: "

// Kept returns the CRDs of a component that were fetched earlier, found by the component's digest. It returns nil if there are none, or if
// the lock has another digest.
func (c CRDs) Kept(wanted v1alpha1.LockedComponent, lock *v1alpha1.Lock) ([]byte, error) {
	content, err := os.ReadFile(c.file(wanted))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the CRDs of %s: %w", wanted, err)
	}
	first, rest, _ := strings.Cut(string(content), "\n")
	wanted.SHA256 = strings.TrimPrefix(first, digestLine)
	if known := lock.Verify(wanted) == nil; known {
		return []byte(rest), nil
	}
	return nil, nil
}

// Fetch reads a component and keeps its CRDs. The component may be a stranger's, so that nothing here parses it. A component that the lock
// knows another digest of is refused, as `fleetctl init` does.
func (c CRDs) Fetch(ctx context.Context, r *Reader, wanted v1alpha1.LockedComponent, lock *v1alpha1.Lock) ([]byte, error) {
	read, err := r.Provider(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if err := lock.Verify(read.LockedComponent); err != nil {
		return nil, err
	}
	crds := c.Only(read.YAML)
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("keep the CRDs of %s: %w", wanted, err)
	}
	if err := atomicfile.Write(c.file(wanted), append([]byte(digestLine+read.SHA256+"\n"), crds...), 0o644); err != nil {
		return nil, fmt.Errorf("keep the CRDs of %s: %w", wanted, err)
	}
	return crds, nil
}

// file is where the CRDs of a component are kept.
func (c CRDs) file(wanted v1alpha1.LockedComponent) string {
	wanted.SHA256 = ""
	name := fmt.Sprintf("%s-%s-%.16s.yaml", wanted.Type, wanted.Name, Digest(fmt.Append(nil, wanted)))
	return filepath.Join(c.Dir, strings.Map(safe, name))
}

// safe keeps a file's name one of a file: fleet.yaml is checked by now, and this is the belt to those braces.
func safe(r rune) rune {
	if r == '/' || r == '\\' || r < ' ' {
		return '_'
	}
	return r
}
