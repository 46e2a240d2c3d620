package schema

import (
	"strings"
	"testing"
)

// A value that is not in the format of its field is told at the field, as are all others of its object.
func TestUnreadableTexts(t *testing.T) {
	const (
		pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: [{name: a, image: b, " +
			"resources: {limits: {cpu: %, nvidia.com/gpu: 1, memory: 1Gi}}}]}"
		release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: b}\nspec: {interval: %, " +
			"chartRef: {kind: HelmChart, name: a}}"
		budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: b}\nspec: {minAvailable: %}"
	)
	for _, tc := range []struct {
		text, value, at, summary string
		kind                     Type
	}{
		{pod, "100mm", "spec.containers[0].resources.limits.cpu", `"100mm" is no quantity`, Invalid},
		{pod, "64MB", "spec.containers[0].resources.limits.cpu", `"64MB" is no quantity`, Invalid},
		{pod, "true", "spec.containers[0].resources.limits.cpu", "found true or false, expected a quantity", WrongType},
		{release, "10min", "spec.interval", `"10min" is no duration`, Invalid},
		{release, "10", "spec.interval", "found a number, expected a duration", WrongType},
		{budget, "true", "spec.minAvailable", "found true or false, expected a number or text", WrongType},
		{pod, "100m", "", "", ""},
		{pod, "2", "", "", ""},
		{release, "1h30m", "", "", ""},
		{budget, "50%", "", "", ""},
	} {
		problems, err := NewSet().Check(t.Context(), object(t, strings.Replace(tc.text, "%", tc.value, 1)))
		switch {
		case err != nil:
			t.Errorf("%s: %v", tc.value, err)
		case tc.at == "" && len(problems) == 0:
		case len(problems) != 1 || problems[0].Path != tc.at || problems[0].Summary != tc.summary || problems[0].Type != tc.kind ||
			problems[0].Hint == "":
			t.Errorf("%s: %+v, want %s: %s", tc.value, problems, tc.at, tc.summary)
		}
	}
	both := strings.Replace(strings.Replace(pod, "%", "1x", 1), "1Gi", "1GB", 1)
	if problems, err := NewSet().Check(t.Context(), object(t, both)); err != nil || len(problems) != 2 {
		t.Errorf("of two bad quantities: %+v, %v", problems, err)
	}
}

// The address of a source has one of the schemes that its CRD takes.
func TestAddressesOfSources(t *testing.T) {
	for _, tc := range []struct {
		kind, url string
		ok        bool
	}{
		{"GitRepository", "https://git.example.com/a", true},
		{"GitRepository", "ssh://git@git.example.com/a", true},
		{"GitRepository", "git@git.example.com:a", false},
		{"HelmRepository", "oci://charts.example.com", true},
		{"HelmRepository", "${CHARTS}", true},
		{"HelmRepository", "charts.example.com", false},
		{"OCIRepository", "oci://charts.example.com/a", true},
		{"OCIRepository", "https://charts.example.com/a", false},
	} {
		text := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: " + tc.kind + "\nmetadata: {name: a, namespace: b}\n" +
			"spec: {interval: 1m, url: \"" + tc.url + "\"}"
		problems, err := NewSet().Check(t.Context(), object(t, text))
		if err != nil || tc.ok != (len(problems) == 0) || !tc.ok && (len(problems) != 1 || problems[0].Path != "spec.url") {
			t.Errorf("%s with %s: %+v, %v", tc.kind, tc.url, problems, err)
		}
	}
}
