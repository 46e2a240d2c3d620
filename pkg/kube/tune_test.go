package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func deploymentWith(containers ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "ns", "name": "m"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}}
}

func TestTune(t *testing.T) {
	d := deploymentWith(
		map[string]any{"name": "proxy", "args": []any{"--kube-api-qps=5"}},
		map[string]any{
			"name":      "manager",
			"args":      []any{"--leader-elect", "--kube-api-qps=20", "-machine-concurrency", "10", "kube-api-burst=7", "--qps"},
			"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
			"env":       []any{map[string]any{"name": "DOCKER_HOST", "value": "tcp://engine"}, map[string]any{"name": "HOME", "value": "/"}},
		})
	tuning := Tuning{
		Manager: "m", Flags: map[string]int{"kube-api-qps": 200, "kube-api-burst": 400, "machine-concurrency": 3},
		Requests: map[string]string{"memory": "512Mi"}, Limits: map[string]string{"memory": "2Gi"},
		Env: map[string]string{"DOCKER_HOST": "unix:///engine.sock"},
	}
	if err := Tune(d, tuning); err != nil {
		t.Fatal(err)
	}
	want := deploymentWith(
		map[string]any{"name": "proxy", "args": []any{"--kube-api-qps=5"}},
		map[string]any{
			"name": "manager",
			"args": []any{"--leader-elect", "--kube-api-qps=200", "-machine-concurrency", "3", "kube-api-burst=7", "--qps", "--kube-api-burst=400"},
			"resources": map[string]any{
				"limits": map[string]any{"cpu": "1", "memory": "2Gi"}, "requests": map[string]any{"memory": "512Mi"},
			},
			"env": []any{map[string]any{"name": "HOME", "value": "/"}, map[string]any{"name": "DOCKER_HOST", "value": "unix:///engine.sock"}},
		})
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := Tune(d, tuning); err != nil || !cmp.Equal(want, d) {
		t.Errorf("a second time: %v\n%s", err, cmp.Diff(want, d))
	}
	if got, want := tuning.String(),
		"--kube-api-burst=400 --kube-api-qps=200 --machine-concurrency=3 requests.memory=512Mi limits.memory=2Gi "+
			"env.DOCKER_HOST=unix:///engine.sock"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTuneTakesTheOnlyContainer(t *testing.T) {
	d := deploymentWith(map[string]any{"name": "controller"})
	if err := Tune(d, Tuning{Flags: map[string]int{"concurrent": 4}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(deploymentWith(map[string]any{"name": "controller", "args": []any{"--concurrent=4"}}), d); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTuneFindsNoContainer(t *testing.T) {
	for want, d := range map[string]*unstructured.Unstructured{
		"Deployment ns/m has 2 containers, none of them called manager": deploymentWith(map[string]any{"name": "a"}, map[string]any{"name": "b"}),
		"Deployment ns/m has 0 containers, none of them called manager": deploymentWith(),
	} {
		if err := Tune(d, Tuning{Flags: map[string]int{"concurrent": 4}}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
