//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// stateWhole looks at each file that this machine keeps of its management clusters: none is open to others, half written or
// forgotten.
func (c *chaos) stateWhole() {
	c.t.Helper()
	clusters := filepath.Join(c.state, "clusters")
	err := filepath.WalkDir(c.state, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was a temporary file
		}
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		if strings.Contains(path, "/embedded/") {
			return nil // the running host writes there: that it runs is what counts
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			c.t.Errorf("%s is open to others: %s", path, info.Mode())
		}
		switch {
		case strings.HasSuffix(name, ".fleetctl-tmp"):
			c.t.Errorf("left behind: %s", path)
		case strings.HasSuffix(name, ".json"):
			raw, err := os.ReadFile(path)
			if err != nil || !json.Valid(raw) {
				c.t.Errorf("%s: %v, %q", path, err, raw)
			}
		case name == "kubeconfig" && filepath.Dir(filepath.Dir(path)) == clusters:
			config, err := clientcmd.LoadFromFile(path)
			if err == nil {
				err = clientcmd.ConfirmUsable(*config, "")
			}
			if err != nil {
				c.t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
}
