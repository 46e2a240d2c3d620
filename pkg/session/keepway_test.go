package session

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/hosts"
)

// The parent gives the way to a management cluster again, whatever this machine's file has become. A file that cannot be written is no
// damaged file.
func TestKeepWay(t *testing.T) {
	way := func(server string) []byte {
		return fmt.Appendf(nil, "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '%s'}}], current-context: a, "+
			"users: [{name: a, user: {token: t}}], contexts: [{name: a, context: {cluster: a, user: a}}]}", server)
	}
	for story, before := range map[string]string{
		"none": "", "zeros": "\x00\x00", "half": "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-auth", "noise": "\x01{",
		"another kind": "apiVersion: v1\nkind: Secret\n", "the way of before": string(way("https://10.0.0.1:6443")),
	} {
		t.Run(story, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), hosts.WorkloadKubeconfigFile)
			if before != "" {
				if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := keepWay(t.Context(), file, "eu", way("https://10.0.0.2:6443")); err != nil {
				t.Fatal(err)
			}
			if _, err := hosts.Kubeconfig(file, "eu"); err != nil {
				t.Error(err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "folder", hosts.WorkloadKubeconfigFile)
	if err := os.MkdirAll(filepath.Join(file, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := keepWay(t.Context(), file, "eu", way("https://10.0.0.2:6443")); err == nil {
		t.Error("a folder was taken for a file")
	}
}
