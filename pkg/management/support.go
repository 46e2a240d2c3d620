package management

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/support"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// SupportFile is the name of a bundle that is gathered without being asked for, in the cluster's state folder.
const SupportFile = "support-bundle.tar.gz"

// maxSupported bounds the files of this machine that go along.
const maxSupported = 1 << 20

// supportTime bounds the time for a support bundle that nobody asked for.
const supportTime = 90 * time.Second

// SupportOfFailure gathers a support bundle of the target after a command has failed, before the command tears anything down, because the
// user of a pipeline has no other way to look at it. It returns the name of the file, or "" if it gathered nothing: after an interruption,
// or if this machine has made nothing yet. If the bundle fails, the reporter says so.
func SupportOfFailure(ctx context.Context, report progress.Reporter, t *Target, file string, failure error) string {
	if errors.Is(context.Cause(ctx), context.Canceled) || !t.Known() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), supportTime)
	defer cancel()
	step := report.Start("gather the support bundle of " + t.Name)
	result, err := SupportBundle(ctx, t, file, failure.Error(), step.Detail)
	if err != nil {
		step.Fail(err)
		return ""
	}
	step.Done()
	report.Warn("what there is to see of the failure is in " + result.File + ", without secrets: " + plain.Count(len(result.Entries), "file"))
	return result.File
}

// SupportBundle writes the state of the target to file, without secrets. failure is the error that the bundle is for, or "".
func SupportBundle(ctx context.Context, t *Target, file, failure string, detail func(string)) (*support.Result, error) {
	from := support.Sources{Name: t.Name, Status: StatusSources(ctx, t), Files: map[string][]byte{}, Failure: failure, Detail: detail}
	if h, err := t.Host(ctx); err == nil && !t.Pivoted() {
		from.Logs, _ = h.(host.Logger)
	}
	add := func(dir, name string) {
		if content, err := within.Start(dir, name, maxSupported); err == nil {
			from.Files[filepath.Base(name)] = content
		}
	}
	add(t.Cluster.Dir, "cluster.json")
	if r := t.Record; r != nil && r.Repo != "" {
		add(r.Repo, v1alpha1.FileName)
		add(r.Repo, "fleet.lock")
	}
	add(t.Cluster.Path(GitServeDir), "git-serve.log")
	for _, private := range []string{KubeconfigFile, hosts.WorkloadKubeconfigFile, filepath.Join(GitServeDir, "git-serve.json")} {
		if content, err := within.Start(t.Cluster.Dir, private, maxSupported); err == nil {
			from.Private = append(from.Private, content)
		}
	}
	return support.Write(ctx, file, from)
}
