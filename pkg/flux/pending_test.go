package flux

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

var (
	applied = strings.Repeat("1", 40)
	newer   = strings.Repeat("2", 40)
)

// testWorld is testdata/world.yaml.
func testWorld(t *testing.T) world {
	t.Helper()
	content, err := os.ReadFile("testdata/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.ParseYAML(content)
	if err != nil {
		t.Fatal(err)
	}
	w := world{}
	for _, obj := range objects {
		ref := kube.RefOf(obj)
		if w[ref.GroupVersionKind] == nil {
			w[ref.GroupVersionKind] = kube.Objects{}
		}
		w[ref.GroupVersionKind][ref.Key] = obj
	}
	return w
}

// set changes a field of obj; a nil value removes it.
func set(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if value == nil {
		unstructured.RemoveNestedField(obj.Object, path...)
		return
	}
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// shares lets a release use a HelmChart that is not its own.
func shares(t *testing.T, release *unstructured.Unstructured, chart kube.Key) {
	t.Helper()
	set(t, release, nil, "spec", "chart")
	set(t, release, nil, "status", "helmChart")
	set(t, release, map[string]any{"kind": "HelmChart", "name": chart.Name, "namespace": chart.Namespace}, "spec", "chartRef")
}

// ready sets obj's Ready condition.
func ready(t *testing.T, obj *unstructured.Unstructured, status, reason, message string) {
	t.Helper()
	condition := map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": obj.GetGeneration(),
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	}
	if err := unstructured.SetNestedSlice(obj.Object, []any{condition}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
}

func TestPending(t *testing.T) {
	var (
		demo   = kube.Key{Namespace: "demo", Name: "demo"}
		chart  = kube.Key{Namespace: Namespace, Name: "demo-demo"}
		dev    = kube.Key{Namespace: Namespace, Name: "clusters-dev"}
		charts = kube.Key{Namespace: Namespace, Name: "charts"}
		newRev = "main@sha1:" + newer
	)
	for _, tt := range []struct {
		name   string
		commit string
		change func(t *testing.T, w world)
		want   []string
	}{
		{name: "healthy", commit: applied},
		{
			name: "an older commit", commit: newer,
			want: []string{"GitRepository flux-system/flux-system: it has fetched 111111111111, not 222222222222"},
		},
		{
			name: "nothing there", commit: applied,
			change: func(_ *testing.T, w world) { clear(w) },
			want:   []string{"GitRepository flux-system/flux-system: it does not exist"},
		},
		{
			name: "source not reconciled", commit: applied,
			change: func(t *testing.T, w world) { set(t, w[gitRepositoryKind][systemKey], nil, "status") },
			want:   []string{"GitRepository flux-system/flux-system: not reconciled yet"},
		},
		{
			name: "source fails", commit: newer,
			change: func(t *testing.T, w world) {
				ready(t, w[gitRepositoryKind][systemKey], "False", "GitOperationFailed", "authentication required")
			},
			want: []string{"GitRepository flux-system/flux-system: GitOperationFailed: authentication required"},
		},
		{
			name: "source suspended", commit: applied,
			change: func(t *testing.T, w world) { set(t, w[gitRepositoryKind][systemKey], true, "spec", "suspend") },
			want:   []string{"GitRepository flux-system/flux-system: it is suspended"},
		},
		{
			name: "system suspended", commit: applied,
			change: func(t *testing.T, w world) { set(t, w[kustomizationKind][systemKey], true, "spec", "suspend") },
			want:   []string{"Kustomization flux-system/flux-system: it is suspended"},
		},
		{
			name: "fetched, not applied", commit: newer,
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
			},
			want: []string{"Kustomization flux-system/flux-system: it has not applied main@sha1:222222222222 yet"},
		},
		{
			name: "the system has applied it, the rest has not", commit: newer,
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
				set(t, w[kustomizationKind][systemKey], newRev, "status", "lastAppliedRevision")
			},
			want: []string{"Kustomization flux-system/clusters-dev: it has not applied main@sha1:222222222222 yet"},
		},
		{
			name: "the chart is not made of it", commit: newer,
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
				set(t, w[kustomizationKind][systemKey], newRev, "status", "lastAppliedRevision")
				set(t, w[kustomizationKind][dev], newRev, "status", "lastAppliedRevision")
			},
			want: []string{"HelmRelease demo/demo: its chart does not come from main@sha1:222222222222 yet"},
		},
		{
			name: "the chart is not installed", commit: newer,
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
				set(t, w[kustomizationKind][systemKey], newRev, "status", "lastAppliedRevision")
				set(t, w[kustomizationKind][dev], newRev, "status", "lastAppliedRevision")
				set(t, w[helmChartKind][chart], newRev, "status", "observedSourceArtifactRevision")
				set(t, w[helmChartKind][chart], "0.1.0+222222222222", "status", "artifact", "revision")
			},
			want: []string{"HelmRelease demo/demo: its chart 0.1.0+222222222222 is not installed yet"},
		},
		{
			name: "the chart that it shares is not made of it", commit: newer,
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
				set(t, w[kustomizationKind][systemKey], newRev, "status", "lastAppliedRevision")
				set(t, w[kustomizationKind][dev], newRev, "status", "lastAppliedRevision")
				shares(t, w[helmReleaseKind][demo], chart)
			},
			want: []string{"HelmRelease demo/demo: its chart does not come from main@sha1:222222222222 yet"},
		},
		{
			name: "the chart that it shares is not installed", commit: applied,
			change: func(t *testing.T, w world) {
				shares(t, w[helmReleaseKind][demo], chart)
				set(t, w[helmChartKind][chart], "0.1.0+222222222222", "status", "artifact", "revision")
			},
			want: []string{"HelmRelease demo/demo: its chart 0.1.0+222222222222 is not installed yet"},
		},
		{
			name: "a release fails", commit: applied,
			change: func(t *testing.T, w world) {
				ready(t, w[helmReleaseKind][demo], "False", "InstallFailed", "values don't meet the specifications")
			},
			want: []string{"HelmRelease demo/demo: InstallFailed: values don't meet the specifications"},
		},
		{
			name: "a release has changed since", commit: applied,
			change: func(_ *testing.T, w world) { w[helmReleaseKind][demo].SetGeneration(4) },
			want:   []string{"HelmRelease demo/demo: its newest generation is not reconciled yet"},
		},
		{
			name: "a release is not there yet", commit: applied,
			change: func(_ *testing.T, w world) { delete(w[helmReleaseKind], demo) },
			want:   []string{"HelmRelease demo/demo: it does not exist"},
		},
		{
			name: "the user suspended a release that fails", commit: applied,
			change: func(t *testing.T, w world) {
				ready(t, w[helmReleaseKind][demo], "False", "InstallFailed", "no")
				set(t, w[helmReleaseKind][demo], true, "spec", "suspend")
			},
		},
		{
			name: "two at once", commit: applied,
			change: func(t *testing.T, w world) {
				ready(t, w[helmReleaseKind][demo], "False", "InstallFailed", "no")
				set(t, w[helmRepositoryKind][charts], "default", "spec", "type")
			},
			want: []string{"HelmRelease demo/demo: InstallFailed: no", "HelmRepository flux-system/charts: not reconciled yet"},
		},
		{
			name: "what is applied to another cluster is not looked for here", commit: applied,
			change: func(t *testing.T, w world) {
				set(t, w[kustomizationKind][dev], "far", "spec", "kubeConfig", "secretRef", "name")
				delete(w[helmReleaseKind], demo)
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testWorld(t)
			if tt.change != nil {
				tt.change(t, w)
			}
			var got []string
			for _, u := range w.pending(tt.commit) {
				got = append(got, u.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReport(t *testing.T) {
	w := testWorld(t)
	got := append(w.report(kustomizationKind), w.report(helmReleaseKind)...)
	rev := "main@sha1:" + applied
	want := []Object{
		{
			Kind: "Kustomization", Namespace: Namespace, Name: "clusters-dev", Ready: true,
			Source: "GitRepository/flux-system/flux-system", Revision: rev,
		},
		{
			Kind: "Kustomization", Namespace: Namespace, Name: "flux-system", Ready: true,
			Source: "GitRepository/flux-system/flux-system", Revision: rev,
		},
		{
			Kind: "Kustomization", Namespace: "other", Name: "stray", Reason: "not reconciled yet", Suspended: true,
			Source: "GitRepository/other/gone", Remote: true,
		},
		{
			Kind: "HelmRelease", Namespace: "demo", Name: "demo", Ready: true, Source: "GitRepository/flux-system/flux-system",
			Revision: "0.1.0+111111111111",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// What keeps a release from a new chart is told with the release, long before helm-controller says so.
func TestChartTrouble(t *testing.T) {
	demo, chart := kube.Key{Namespace: "demo", Name: "demo"}, kube.Key{Namespace: Namespace, Name: "demo-demo"}
	for _, tt := range []struct {
		name   string
		change func(w world)
		shared bool
		want   string
	}{
		{
			name: "its own is broken", change: func(w world) { ready(t, w[helmChartKind][chart], "False", "ChartPackageError", "no version") },
			want: "its HelmChart flux-system/demo-demo: ChartPackageError: no version",
		},
		{
			name: "the shared one is broken", shared: true,
			change: func(w world) { ready(t, w[helmChartKind][chart], "False", "ChartPackageError", "no version") },
			want:   "its HelmChart flux-system/demo-demo: ChartPackageError: no version",
		},
		{
			name: "the shared one is gone", shared: true, change: func(w world) { delete(w[helmChartKind], chart) },
			want: "there is no HelmChart flux-system/demo-demo",
		},
		{name: "all is well", shared: true, change: func(world) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testWorld(t)
			if tt.shared {
				shares(t, w[helmReleaseKind][demo], chart)
			}
			tt.change(w)
			if got := w.report(helmReleaseKind)[0]; got.Reason != tt.want || got.Ready != (tt.want == "") {
				t.Errorf("report: %+v, want %q", got, tt.want)
			}
			var pending []string
			for _, u := range w.pending(applied) {
				pending = append(pending, u.Reason)
			}
			if got := strings.Join(pending, "; "); got != tt.want {
				t.Errorf("pending: %q, want %q", got, tt.want)
			}
			if got, want := len(w.sharedCharts()), map[bool]int{true: 1}[tt.shared && len(w[helmChartKind]) > 0]; got != want {
				t.Errorf("%d shared charts, want %d", got, want)
			}
		})
	}
}

func TestInventoryRef(t *testing.T) {
	for id, want := range map[string]string{
		"flux-system_apps_kustomize.toolkit.fluxcd.io_Kustomization": "Kustomization flux-system/apps",
		"demo_demo_helm.toolkit.fluxcd.io_HelmRelease":               "HelmRelease demo/demo",
		"_demo__Namespace":              "",
		"flux-system_x_apps_Deployment": "",
		"nonsense":                      "",
	} {
		ref, ok := inventoryRef(id)
		if ok != (want != "") || ok && ref.String() != want {
			t.Errorf("%s: got %v %v, want %q", id, ref, ok, want)
		}
	}
}

func TestShortRevision(t *testing.T) {
	for in, want := range map[string]string{
		"main@sha1:" + applied: "main@sha1:111111111111", "sha1:" + applied: "sha1:111111111111", "0.1.0": "0.1.0",
		"main@sha1:": "main@sha1:nothing",
	} {
		if got := shortRevision(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// A wait for what somebody has suspended says how it goes on; it ends by itself never.
func TestHintOfSuspended(t *testing.T) {
	source := kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}
	sync := kube.Ref{GroupVersionKind: kustomizationKind, Key: systemKey}
	hint := resumeHint(kube.NotReadyError{{Ref: source, Reason: whySuspended}, {Ref: sync, Reason: whySuspended}})
	for _, command := range []string{
		`kubectl -n flux-system patch gitrepository flux-system --type merge -p '{"spec":{"suspend":false}}'`,
		`kubectl -n flux-system patch kustomization flux-system --type merge -p '{"spec":{"suspend":false}}'`,
	} {
		if !strings.Contains(hint, command) {
			t.Errorf("%q lacks %q", hint, command)
		}
	}
	if hint := resumeHint(kube.NotReadyError{{Ref: source, Reason: "it does not exist"}}); hint != "" {
		t.Errorf("got %q", hint)
	}
}
