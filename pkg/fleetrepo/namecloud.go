package fleetrepo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// nameCloud gives the folders of a management cluster without a cloud the name of its first infrastructure provider.
// src is fleet.yaml, which already lists the provider. The folders keep their name if Flux reads them already, or if
// another management cluster shares them or has the new ones. fleet.yaml then names the old cloud.
func (r *Repo) nameCloud(e *Edit, src []byte, m *v1alpha1.ManagementCluster, provider string) ([]byte, error) {
	from := m.Layout()
	if from.Cloud != v1alpha1.NoCloud {
		return src, nil
	}
	to := from
	to.Cloud = provider
	cloud := to.Cloud
	others := slices.ContainsFunc(r.layouts(), func(l layout.Layout) bool {
		return l != from && (l.Cloud == from.Cloud || l.Owned() == to.Owned())
	})
	if others || r.exists(from.SyncFile()) || r.exists(to.Owned()) || r.exists(layout.TenantsDir(to.Cloud)) {
		cloud = from.Cloud
	}
	index := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	src, err := yamledit.Set(src, 0, yamledit.Path{"spec", "managementClusters", index, "cloud"}, cloud)
	if err != nil || cloud == from.Cloud {
		return src, err
	}
	moved := strings.NewReplacer(from.Owned()+"/", to.Owned()+"/", layout.TenantsDir(from.Cloud)+"/", layout.TenantsDir(to.Cloud)+"/")
	for _, dir := range []string{from.Owned(), layout.TenantsDir(from.Cloud), "README.md"} {
		names, err := r.filesBelow(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			content, err := r.read(name)
			if err != nil {
				return nil, err
			}
			changed := []byte(moved.Replace(string(content)))
			at := moved.Replace(name)
			if at != name {
				e.Changes.Delete(name)
			} else if bytes.Equal(changed, content) {
				continue
			}
			e.Changes.Write(manifest.File{Path: at, Content: changed})
		}
	}
	if r.exists(from.Owned()) {
		e.Notes = append(e.Notes, fmt.Sprintf("%s is %s now: it had no cloud before.", from.Owned(), to.Owned()))
	}
	return src, nil
}
