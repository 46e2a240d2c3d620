// Package standingtest gives tests a management cluster to be: a real API server, with a fleet repo and a Git server for it.
package standingtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Cluster is a real API server with a fleet repo for it.
type Cluster struct {
	Client     *kube.Client
	Kubeconfig string // a file with the contexts admin, guest and none that is current
	Git        *gittest.HTTPS
	Deps       management.Deps
	Dir        string
}

// New is a cluster without anything on it, and no fleet repo yet: see Options.
func New(t *testing.T) *Cluster {
	t.Helper()
	client, raw := kubetest.Start(t)
	config, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	admin := config.Contexts[config.CurrentContext]
	guest := admin.DeepCopy()
	guest.AuthInfo = "guest"
	config.AuthInfos["guest"] = config.AuthInfos[admin.AuthInfo].DeepCopy()
	config.AuthInfos["guest"].Impersonate = "guest" // somebody who may do what everybody may
	config.Contexts["admin"], config.Contexts["guest"] = admin, guest
	config.CurrentContext = ""
	c := &Cluster{
		Client: client, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), Dir: t.TempDir(), Git: gittest.NewHTTPS(t, gittest.Options{}),
		Deps: management.Deps{
			Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
			LookupEnv: func(string) (string, bool) { return "", false },
		},
	}
	if err := clientcmd.WriteToFile(*config, c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return c
}

// Options are those of init, with a fleet.yaml that names a context.
func (c *Cluster) Options(t *testing.T, context string) session.Options {
	t.Helper()
	t.Setenv("CI", "true") // nobody has told git a name
	for name, content := range map[string]string{
		"ca.pem": string(c.Git.CA),
		v1alpha1.FileName: `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "` + c.Git.URL + `", caFile: ca.pem}
  managementClusters:
  - name: mgmt
    host: {type: existing, existing: {kubeconfig: "` + c.Kubeconfig + `", context: ` + context + `}}
    providers: [{name: docker, version: v1.14.2}]
`,
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return session.Options{Dir: c.Dir, Git: change.Credentials{Token: c.Git.Token}}
}

// Take does what init does to a cluster before it installs anything.
func (c *Cluster) Take(ctx context.Context, t *testing.T, settle ...func(*session.Options)) (*session.Session, error) {
	t.Helper()
	o := c.Options(t, "admin")
	for _, apply := range settle {
		apply(&o)
	}
	s, err := session.Open(ctx, c.Deps, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if s.Stranger != nil {
		return s, s.Stranger
	}
	if err := standing.Claim(ctx, s, c.Client, following.View{}); err != nil {
		return s, err
	}
	return s, s.Cluster.Save(s.Record())
}

// WriteJournal puts the journal of a standby there.
func (c *Cluster) WriteJournal(ctx context.Context, t *testing.T, j handover.Journal) {
	t.Helper()
	j.FormatVersion = "1"
	content, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": content},
	}
	if err := c.Client.WithWatch.Delete(ctx, secret.DeepCopy()); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := c.Client.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
}
