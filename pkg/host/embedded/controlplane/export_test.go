package controlplane

import (
	"path/filepath"
	"time"
)

// LeafLife is how long a certificate holds.
const LeafLife = leafLife

// MakeKeys makes the keys of a control plane as a start at that time would have made them.
func MakeKeys(dir string, now time.Time) error {
	_, err := pki{dir: filepath.Join(dir, pkiDir)}.ensure(now)
	return err
}
