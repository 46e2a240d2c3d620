//go:build integration

package masters

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A run that fails leaves a support bundle of the parent, and one of the new management cluster as soon as this answers, each with the
// failure. A file that the user has named is there in every case.
func TestFailedRunLeavesSupportBundles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := openMasters(t, mastersFleet)
	if err := os.WriteFile(filepath.Join(r.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(fleetID), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"eu", "early"} {
		e, err := r.Transfer(fleetrepo.TransferOptions{Cluster: cluster, To: "eu"})
		r = apply(t, r, e, err)
	}
	d := deps(t)
	root, eu := standing(ctx, t, d, r.Dir, "root"), standing(ctx, t, d, r.Dir, "eu")
	namespace(ctx, t, root, "of-root")
	namespace(ctx, t, eu, "of-eu")
	run := func(file string) *Result {
		t.Helper()
		o := Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}, SupportFile: file}}
		o.Master = masterOf(t, r)
		result, err := Bootstrap(ctx, d, o)
		if err == nil || !strings.Contains(err.Error(), "look whether eu") { // it has no Cluster of its own
			t.Fatalf("got %v", err)
		}
		return result
	}
	file := filepath.Join(t.TempDir(), "mine.tar.gz")
	for named, want := range map[string][2]string{
		"":   {d.Store.Cluster("root").Path(management.SupportFile), d.Store.Cluster("eu").Path(management.SupportFile)},
		file: {file, strings.TrimSuffix(file, ".tar.gz") + "-eu.tar.gz"},
	} {
		if result := run(named); result.SupportBundle != want[0] || result.ClusterSupportBundle != want[1] {
			t.Errorf("with --support-bundle %q: %q and %q", named, result.SupportBundle, result.ClusterSupportBundle)
			continue
		}
		for i, name := range []string{"root", "eu"} {
			objects, readme := inBundle(t, want[i], "core/Namespace.yaml"), inBundle(t, want[i], "README.txt")
			if !strings.Contains(objects, "name: of-"+name) || !strings.Contains(readme, "look whether eu") {
				t.Errorf("the bundle of %s:\n%s\n%s", name, readme, objects)
			}
		}
	}
	if err := d.Store.Cluster("root").Remove(); err != nil { // it was torn down
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "mine.tar.gz")
	if result := run(file); result.SupportBundle != "" || result.ClusterSupportBundle != file {
		t.Errorf("without a parent: %q and %q", result.SupportBundle, result.ClusterSupportBundle)
	}
}

// Before init has made its record, the new management cluster is reached with the kubeconfig that the parent has given. A cluster that does
// not answer has no bundle, and neither has a run that waits, that has not begun, or that was interrupted.
func TestSupportBundleOfABareCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := openMasters(t, mastersFleet)
	d := deps(t)
	client, kubeconfig := kubetest.Start(t)
	namespace(ctx, t, client, "of-eu")
	run := func(ctx context.Context, works, waits bool) *Result {
		t.Helper()
		m := &master{
			Deps: d, opts: Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}}, Master: masterOf(t, r)},
			result: &Result{Cluster: "eu", Parent: "root"}, works: works, waits: waits,
		}
		failure := errors.New("no luck")
		if err := m.withSupport(ctx, failure); !errors.Is(err, failure) {
			t.Fatalf("got %v", err)
		}
		return m.result
	}
	if got := run(ctx, true, false).ClusterSupportBundle; got != "" {
		t.Errorf("before there is a way to it: %s", got)
	}
	eu := d.Store.Cluster("eu")
	if err := kube.MergeKubeconfig(ctx, eu.Path(hosts.WorkloadKubeconfigFile), "eu", kubeconfig); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(ctx)
	end()
	for name, got := range map[string]*Result{
		"interrupted": run(over, true, false), "refused": run(ctx, false, false), "waiting": run(ctx, true, true),
	} {
		if got.ClusterSupportBundle != "" {
			t.Errorf("%s: %s", name, got.ClusterSupportBundle)
		}
	}
	got := run(ctx, true, false)
	if got.ClusterSupportBundle != eu.Path(management.SupportFile) || got.SupportBundle != "" {
		t.Fatalf("got %q and %q", got.SupportBundle, got.ClusterSupportBundle)
	}
	if objects := inBundle(t, got.ClusterSupportBundle, "core/Namespace.yaml"); !strings.Contains(objects, "name: of-eu") {
		t.Errorf("it has\n%s", objects)
	}
}

func namespace(ctx context.Context, t *testing.T, on *kube.Client, name string) {
	t.Helper()
	applyYAML(ctx, t, on, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
}

// inBundle is the content of the file of a support bundle whose name ends so.
func inBundle(t *testing.T, bundle, name string) string {
	t.Helper()
	content, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(zip); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", name, bundle, err)
		}
		if strings.HasSuffix(header.Name, name) {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}
