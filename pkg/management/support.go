package management

import (
	"context"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/support"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// SupportFile is the name of a bundle that is gathered without being asked for, in the cluster's state folder.
const SupportFile = "support-bundle.tar.gz"

// maxSupported bounds the files of this machine that go along.
const maxSupported = 1 << 20

// SupportBundle writes the state of the target to file, without secrets. failure is the error that the bundle is for, or "".
func SupportBundle(ctx context.Context, t *Target, file, failure string, detail func(string)) (*support.Result, error) {
	from := support.Sources{Name: t.Name, Status: StatusSources(ctx, t), Files: map[string][]byte{}, Failure: failure, Detail: detail}
	if h, err := t.Host(ctx); err == nil && !t.Pivoted() {
		from.Logs, _ = h.(host.Logger)
	}
	add := func(dir, name string) {
		if content, err := within.ReadFile(dir, name, maxSupported); err == nil {
			from.Files[filepath.Base(name)] = content
		}
	}
	add(t.Cluster.Dir, "cluster.json")
	if r := t.Record; r != nil && r.Repo != "" {
		add(r.Repo, v1alpha1.FileName)
		add(r.Repo, "fleet.lock")
	}
	add(t.Cluster.Path(GitServeDir), "git-serve.log")
	for _, private := range []string{KubeconfigFile, filepath.Join(GitServeDir, "git-serve.json")} {
		if content, err := within.ReadFile(t.Cluster.Dir, private, maxSupported); err == nil {
			from.Private = append(from.Private, content)
		}
	}
	return support.Write(ctx, file, from)
}
