package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func kubeconfigOf(server string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: original
contexts: [{name: original, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: secret}}]
`)
}

func TestMergeAndRemoveKubeconfig(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "new", "config")
	for _, server := range []string{"https://one:1", "https://two:2"} { // twice: our own entry is replaced
		if err := MergeKubeconfig(ctx, path, "fleet-mgmt", kubeconfigOf(server)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["fleet-mgmt"].Server; got != "https://two:2" || config.CurrentContext != "fleet-mgmt" {
		t.Errorf("server %q, current context %q", got, config.CurrentContext)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	removed, err := RemoveFromKubeconfig(ctx, path, "fleet-mgmt")
	if err != nil || !removed {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if removed, err = RemoveFromKubeconfig(ctx, path, "fleet-mgmt"); err != nil || removed {
		t.Errorf("removed a second time: %v, %v", removed, err)
	}
	config, err = clientcmd.LoadFromFile(path)
	if err != nil || len(config.Contexts)+len(config.Clusters)+len(config.AuthInfos) != 0 || config.CurrentContext != "" {
		t.Errorf("left behind: %+v, %v", config, err)
	}
}

func TestKubeconfigEntriesOfOthersStay(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, kubeconfigOf("https://theirs:1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err := RemoveFromKubeconfig(ctx, path, "original"); err != nil || removed {
		t.Errorf("removed an entry of somebody else: %v, %v", removed, err)
	}
	err := MergeKubeconfig(ctx, path, "original", kubeconfigOf("https://ours:1"))
	if err == nil || diag.Hint(err) == "" {
		t.Errorf("took over an entry of somebody else: %v", err)
	}
	if err := MergeKubeconfig(ctx, path, "ours", kubeconfigOf("https://ours:1")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || config.Clusters["c"].Server != "https://theirs:1" || config.AuthInfos["u"].Token != "secret" {
		t.Errorf("their entry changed: %+v, %v", config, err)
	}
}

func TestKubeconfigSymlinkStays(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "config")
	if err := os.WriteFile(target, kubeconfigOf("https://theirs:1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := MergeKubeconfig(t.Context(), link, "ours", kubeconfigOf("https://ours:1")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if config, err := clientcmd.LoadFromFile(target); err != nil || config.Clusters["ours"] == nil {
		t.Errorf("the target was not changed: %v", err)
	}
}

func TestKubeconfigMergesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	names := strings.Fields("a b c d e f g h")
	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() {
			if err := MergeKubeconfig(t.Context(), path, name, kubeconfigOf("https://x:1")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || len(config.Contexts) != len(names) {
		t.Errorf("%d of %d entries, %v", len(config.Contexts), len(names), err)
	}
}

func TestKubeconfigLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	lock := path + ".lock"
	if err := os.WriteFile(lock, nil, 0o600); err != nil { // kubectl's lock
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := MergeKubeconfig(ctx, path, "ours", kubeconfigOf("https://x:1"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(diag.Hint(err), lock) {
		t.Errorf("%v, hint %q; want a timeout that names the lock", err, diag.Hint(err))
	}
	if err := os.WriteFile(lock, []byte(lockMark), 0o600); err != nil { // left by a killed fleetctl
		t.Fatal(err)
	}
	if err := MergeKubeconfig(t.Context(), path, "ours", kubeconfigOf("https://x:1")); err != nil {
		t.Errorf("a stale lock of our own stops us: %v", err)
	}
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock is still there: %v", err)
	}
}

func TestMergeKubeconfigRefusesHalfOnes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for _, bad := range []string{"", "{", "apiVersion: v1\nkind: Config\n"} {
		if err := MergeKubeconfig(t.Context(), path, "ours", []byte(bad)); err == nil {
			t.Errorf("merged %q", bad)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}

// ReachOf finds every file and every command on the user's machine that a kubeconfig names, in each of its users and clusters.
func TestReachOf(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	const plain = "clusters: [{name: a, cluster: {server: 'https://a', certificate-authority-data: YQ==}}]\nusers: [{name: a, user: " +
		"{token: a, client-certificate-data: YQ==, client-key-data: YQ==}}]\n"
	for _, c := range []struct{ config, want string }{
		{plain, ""},
		{
			"users: [{name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}}]\n",
			"runs a command: sh",
		},
		{
			"users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}]\n",
			"runs a command: (no name)",
		},
		{"users: [{name: a, user: {auth-provider: {name: gcp, config: {cmd-path: sh}}}}]\n", "runs a command: the authentication provider gcp"},
		{"users: [{name: a, user: {token: a}}, {name: b, user: {tokenFile: /home/me/token}}]\n", "reads a file: /home/me/token"},
		{"users: [{name: a, user: {client-certificate: me.crt}}]\n", "reads a file: me.crt"},
		{"users: [{name: a, user: {client-key: me.key}}]\n", "reads a file: me.key"},
		{"clusters: [{name: b, cluster: {server: 'https://b', certificate-authority: ../ca.crt}}]\n", "reads a file: ../ca.crt"},
	} {
		reach, err := ReachOf([]byte(head + c.config))
		if err != nil || reach.Text() != c.want {
			t.Errorf("%s\ngot %q, %v; want %q", c.config, reach.Text(), err, c.want)
		}
	}
	if _, err := ReachOf([]byte("{")); err == nil {
		t.Error("what is no kubeconfig reaches nothing")
	}
}

// A tenant who may make Clusters names one like the management cluster, or like another tenant's cluster. It must not take over the entry
// of either.
func TestMergeKubeconfigOfAnother(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "config")
	server := func(name string) string {
		t.Helper()
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return config.Clusters[name].Server
	}
	if err := MergeKubeconfig(ctx, path, "fleetctl-mgmt", kubeconfigOf("https://mgmt:1")); err != nil {
		t.Fatal(err)
	}
	err := MergeKubeconfigOf(ctx, path, "fleetctl-mgmt", "mgmt/tenant/mgmt", kubeconfigOf("https://tenant:1"))
	if err == nil || diag.Hint(err) == "" || server("fleetctl-mgmt") != "https://mgmt:1" {
		t.Errorf("the management cluster's entry is at %s: %v", server("fleetctl-mgmt"), err)
	}
	for _, at := range []string{"https://shop:1", "https://shop:2"} { // it was made anew
		if err := MergeKubeconfigOf(ctx, path, "fleetctl-shop", "mgmt/prod/shop", kubeconfigOf(at)); err != nil || server("fleetctl-shop") != at {
			t.Errorf("its own entry is at %s: %v", server("fleetctl-shop"), err)
		}
	}
	for _, of := range []string{"mgmt/tenant/shop", "other/prod/shop", "true"} {
		if err := MergeKubeconfigOf(ctx, path, "fleetctl-shop", of, kubeconfigOf("https://tenant:1")); err == nil ||
			server("fleetctl-shop") != "https://shop:2" {
			t.Errorf("%s: the entry is at %s: %v", of, server("fleetctl-shop"), err)
		}
	}
	if removed, err := RemoveFromKubeconfig(ctx, path, "fleetctl-shop"); err != nil || !removed {
		t.Errorf("removed %v, %v", removed, err)
	}
}
