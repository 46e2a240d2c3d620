package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

const userKubeconfig = `apiVersion: v1
kind: Config
current-context: work
preferences: {colors: true}
clusters:
- name: work
  cluster: {server: "https://work.example.com", certificate-authority: ca.crt, extensions: [{name: x, extension: {a: 1}}]}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: shop}
users:
- name: me
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks, get-token], interactiveMode: Never}}
`

const ourKubeconfig = `apiVersion: v1
kind: Config
current-context: kind-a
clusters: [{name: kind-a, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: YQ==}}]
contexts: [{name: kind-a, context: {cluster: kind-a, user: kind-a}}]
users: [{name: kind-a, user: {client-certificate-data: YQ==, client-key-data: Yg==}}]
`

// For every kubeconfig of a user, fleetctl's entries are added and removed again, and kubectl's code reads the same other entries as
// before. Otherwise the file is not changed.
func FuzzMergeKubeconfig(f *testing.F) {
	for _, text := range []string{
		userKubeconfig, ourKubeconfig, "", "{}", "a: b",
		"kind: Config\napiVersion: v1\ncontexts:\n- name: fleet\n  context: {cluster: fleet, user: fleet}\n",
		"apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: null}, {name: a, cluster: {server: x}}]\nusers: [{name: '', user: " +
			"{token: x}}]\n", "current-context: gone\nkind: Config\n", "- a", "apiVersion: v2\nkind: Config\n",
	} {
		f.Add([]byte(text), []byte(ourKubeconfig))
		f.Add([]byte(userKubeconfig), []byte(text))
	}
	path := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, users, ours []byte) {
		if err := os.WriteFile(path, users, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := MergeKubeconfig(t.Context(), path, "fleet", ours); err != nil {
			if left, readErr := os.ReadFile(path); readErr != nil || string(left) != string(users) {
				t.Errorf("after an error (%v) it is\n%s", err, left)
			}
			return
		}
		before, err := clientcmd.Load(users)
		if err != nil {
			t.Fatalf("what kubectl cannot read was changed: %v", err)
		}
		merged, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if merged.CurrentContext != "fleet" || merged.Contexts["fleet"].Cluster != "fleet" || merged.Clusters["fleet"] == nil ||
			merged.AuthInfos["fleet"] == nil {
			t.Fatalf("the entries are not there: %+v", merged)
		}
		if removed, err := RemoveFromKubeconfig(t.Context(), path, "fleet"); err != nil || !removed {
			t.Fatalf("removed %v, %v", removed, err)
		}
		after, err := clientcmd.Load(must(os.ReadFile(path)))
		if err != nil {
			t.Fatal(err)
		}
		before.CurrentContext = "" // the current context was fleetctl's
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("what others have (-want +got)\n%s", diff)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
