package v1alpha1

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

const edited = `# What we run.   Odd   spacing stays.
apiVersion: fleetctl.dev/v1alpha1
kind:   Fleet   # the kind
metadata: {name: "demo", }
spec:
    # Flux comes first here
    flux: # all of it
        # version: v0.0.0 is commented out
        networkPolicy: true

    git:
    managementClusters:
    # the one
    - providers:
      - name: 'docker'   # local
        version: v1.0.0 # old
        variables:
        - name: LONG
          value: |
            one

            two
      # the cloud
      - {name: aws, type: infrastructure}
      name: mgmt

    # the end
`

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct{ path, value, old, new string }{
		"replace plain":  {"spec.managementClusters[0].providers[0].version", "v1.14.2", "version: v1.0.0 # old", "version: v1.14.2 # old"},
		"replace single": {"spec.managementClusters[0].providers[0].name", "vcd", "name: 'docker'   # local", "name: 'vcd'   # local"},
		"replace double": {"metadata.name", `o"k`, `{name: "demo", }`, `{name: "o\"k", }`},
		"same":           {"metadata.name", "demo", "", ""},
		"needs quotes":   {"spec.managementClusters[0].name", "true", "      name: mgmt\n", "      name: \"true\"\n"},
		"add to flow": {
			"spec.managementClusters[0].providers[1].version", "v2", "type: infrastructure}",
			"type: infrastructure, version: v2}",
		},
		"flow with comma": {
			"spec.managementClusters[0].providers[1].version", "a,b", "type: infrastructure}",
			`type: infrastructure, version: "a,b"}`,
		},
		"add to block": {"spec.flux.version", "v2.9.5", "networkPolicy: true\n", "networkPolicy: true\n        version: v2.9.5\n"},
		"fill empty":   {"spec.git.branch", "main", "    git:\n", "    git:\n      branch: main\n"},
		"add behind list": {
			"spec.managementClusters[0].cloud", "c", "infrastructure}\n      name: mgmt\n",
			"infrastructure}\n      name: mgmt\n      cloud: c\n",
		},
		"add nested": {
			"spec.managementClusters[0].host.kind.image", "i", "      name: mgmt\n",
			"      name: mgmt\n      host:\n        kind:\n          image: i\n",
		},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			t.Run(name+" "+strings.Trim(cmp.Diff("", eol), " "), func(t *testing.T) {
				crlf := strings.NewReplacer("\n", eol)
				src := crlf.Replace(edited)
				if tc.old != "" && strings.Count(edited, tc.old) != 1 {
					t.Fatalf("%q is not in the file once", tc.old)
				}
				want := strings.Replace(src, crlf.Replace(tc.old), crlf.Replace(tc.new), 1)
				got, err := Set([]byte(src), tc.path, tc.value)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

func TestSetWithoutLastLineEnd(t *testing.T) {
	got, err := Set([]byte("a: 1\nb: x"), "c.d", "y")
	if want := "a: 1\nb: x\nc:\n  d: \"y\""; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestSetRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		src, path, value string
		cannotEdit       bool
	}{
		"no item":         {src: edited, path: "spec.managementClusters[1].name", value: "x"},
		"no list":         {src: edited, path: "spec.environments[0].name", value: "x"},
		"not text":        {src: edited, path: "spec.flux", value: "x"},
		"through text":    {src: edited, path: "metadata.name.x", value: "x"},
		"bad path":        {src: edited, path: "spec..x", value: "x"},
		"bad index":       {src: edited, path: "spec[x]", value: "x"},
		"line end":        {src: edited, path: "metadata.name", value: "x\ny: z"},
		"syntax":          {src: "a: [", path: "a", value: "x"},
		"long text":       {src: edited, path: "spec.managementClusters[0].providers[0].variables[0].value", value: "x", cannotEdit: true},
		"several lines":   {src: "a: b\n  c\nd: e\n", path: "a", value: "x", cannotEdit: true},
		"alias":           {src: "a: &a {b: c}\nd: *a\n", path: "d.b", value: "x", cannotEdit: true},
		"under an anchor": {src: "a: &a {b: c}\nd: *a\n", path: "a.b", value: "x", cannotEdit: true},
		"anchor":          {src: "a: &a b\nd: *a\n", path: "a", value: "x", cannotEdit: true},
		"tag":             {src: "a: !!str b\n", path: "a", value: "x", cannotEdit: true},
		"implicit pair":   {src: "a: [b: c]\n", path: "a[0].d", value: "x", cannotEdit: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set([]byte(tc.src), tc.path, tc.value)
			if err == nil {
				t.Fatalf("accepted:\n%s", got)
			}
			if errors.Is(err, yamledit.ErrCannotEdit) != tc.cannotEdit {
				t.Errorf("ErrCannotEdit must be %t: %v", tc.cannotEdit, err)
			}
		})
	}
}

// Changing any text value of a file changes one stretch of bytes within this value, and nothing else.
func TestSetChangesNothingElse(t *testing.T) {
	for _, file := range append(testFiles(t, "valid-*.yaml"), "") {
		src := []byte(edited)
		if file != "" {
			src = mustRead(t, file)
		}
		fleet, err := Decode(FileName, src)
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, path := range slices.Sorted(maps.Keys(fleet.source.positions)) {
			for _, value := range []string{"v9.9.9", "", "a: b # c", `"'`, "ünïcode", "x,]}"} {
				if path == "" {
					continue
				}
				got, err := Set(src, path, value)
				if err != nil {
					continue // a list, a long text and the like: TestSetRefuses has these
				}
				tried++
				onlyScalarChanged(t, src, got, path, value)
			}
		}
		if tried < 20 {
			t.Errorf("%s: only %d edits", file, tried)
		}
	}
}

// onlyScalarChanged checks that got differs from src only in the scalar at path, which is on the same line.
func onlyScalarChanged(t *testing.T, src, got []byte, path, value string) {
	t.Helper()
	var before, after yaml.Node
	if err := errors.Join(yaml.Unmarshal(src, &before), yaml.Unmarshal(got, &after)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	steps, err := yamledit.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	now := yamledit.Find(after.Content[0], steps...)
	if now == nil || now.Value != value {
		t.Errorf("%s: is %v; want %q", path, now, value)
	}
	old := yamledit.Find(before.Content[0], steps...)
	was, is := bytes.SplitAfter(src, []byte("\n")), bytes.SplitAfter(got, []byte("\n"))
	if len(was) != len(is) {
		t.Fatalf("%s: lines came or went\n%s", path, cmp.Diff(string(src), string(got)))
	}
	for i := range was {
		if i != old.Line-1 && !bytes.Equal(was[i], is[i]) {
			t.Errorf("%s: line %d changed\n%s", path, i+1, cmp.Diff(string(src), string(got)))
		}
	}
	from, to := []rune(string(was[old.Line-1])), []rune(string(is[old.Line-1]))
	if start := old.Column - 1; old.Value != "" && string(from[:start]) != string(to[:start]) {
		t.Errorf("%s: what stands before it changed\n%s", path, cmp.Diff(string(src), string(got)))
	}
}

func TestSetProviderVersion(t *testing.T) {
	minimal := string(mustRead(t, "testdata/valid-minimal.yaml"))
	flow := "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: x}\nspec: {managementClusters: [{name: m}]} # flow\n"
	for name, tc := range map[string]struct {
		src          string
		providerType ProviderType
		name, want   string
	}{
		"add version": {
			minimal, ProviderInfrastructure, "docker",
			strings.Replace(minimal, "- name: docker\n", "- name: docker\n          version: v1.2.3\n", 1),
		},
		"add provider": {
			minimal, ProviderCore, "cluster-api",
			minimal + "        - name: cluster-api\n          type: core\n          version: v1.2.3\n",
		},
		"change": {
			edited, ProviderInfrastructure, "docker", strings.Replace(edited, "v1.0.0 #", "v1.2.3 #", 1),
		},
		"add to indentless list": {
			edited, ProviderIPAM, "in-cluster",
			strings.Replace(edited, "infrastructure}\n", "infrastructure}\n      - name: in-cluster\n        type: ipam\n        version: v1.2.3\n",
				1),
		},
		"same name, other type": {
			strings.Replace(minimal, "docker", "kubeadm\n          type: bootstrap", 1), ProviderControlPlane, "kubeadm",
			strings.Replace(minimal, "docker", "kubeadm\n          type: bootstrap", 1) +
				"        - name: kubeadm\n          type: control-plane\n          version: v1.2.3\n",
		},
		"no list": {
			strings.Replace(minimal, "      providers:\n        - name: docker\n", "      cloud: x\n", 1), ProviderInfrastructure, "docker",
			strings.Replace(minimal, "      providers:\n        - name: docker\n",
				"      cloud: x\n      providers:\n        - name: docker\n          version: v1.2.3\n", 1),
		},
		"empty list": {
			strings.Replace(minimal, "        - name: docker\n", "", 1), ProviderInfrastructure, "docker",
			strings.Replace(minimal, "- name: docker\n", "- name: docker\n          version: v1.2.3\n", 1),
		},
		"flow": {
			flow, ProviderInfrastructure, "aws",
			strings.Replace(flow, "{name: m}", "{name: m, providers: [ {name: aws, version: v1.2.3} ]}", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SetProviderVersion([]byte(tc.src), "", tc.providerType, tc.name, "v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			again, err := SetProviderVersion(got, "", tc.providerType, tc.name, "v1.2.3")
			if err != nil || !bytes.Equal(got, again) {
				t.Errorf("a second time: %v\n%s", err, cmp.Diff(string(got), string(again)))
			}
		})
	}
	if _, err := SetProviderVersion([]byte(minimal), "other", ProviderCore, "cluster-api", "v1.0.0"); !errors.Is(err, ErrNoManagementCluster) {
		t.Errorf("unknown management cluster: %v", err)
	}
}

func TestSetVariableValue(t *testing.T) {
	minimal := string(mustRead(t, "testdata/valid-minimal.yaml"))
	with := func(variables string) string {
		return strings.Replace(minimal, "- name: docker\n", "- name: docker\n"+variables, 1)
	}
	const key = "A_KEY"
	const first, other = "          variables:\n          - name: A_KEY # the key\n", "          - name: OTHER\n            env: X\n"
	const want = first + "            value: Cg==\n" + other
	for name, tc := range map[string]struct{ src, want string }{
		"not listed": {minimal, with("          variables:\n            - name: A_KEY\n              value: Cg==\n")},
		"env": {
			with(first + "            env: Y\n" + other), with(want),
		},
		"command with base64": {
			with(first + "            command:\n            - make\n            - key\n            base64: true\n" + other), with(want),
		},
		"vault": {
			with(first + "            vault:\n              path: aws/creds/x\n              field: y\n" + other), with(want),
		},
		"no source": {
			with(first + other), with(want),
		},
		"flow": {
			with("          variables: [{name: A_KEY, file: f}, {name: OTHER}]\n"),
			with("          variables: [{name: A_KEY, value: Cg==}, {name: OTHER}]\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SetVariableValue([]byte(tc.src), "", ProviderInfrastructure, "docker", key, "Cg==")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			again, err := SetVariableValue(got, "", ProviderInfrastructure, "docker", key, "Cg==")
			if err != nil || !bytes.Equal(got, again) {
				t.Errorf("a second time: %v\n%s", err, cmp.Diff(string(got), string(again)))
			}
			fleet, err := Decode(FileName, got)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range Validate(fleet) {
				t.Errorf("validate: %s", f)
			}
		})
	}
	if _, err := SetVariableValue([]byte(minimal), "", ProviderInfrastructure, "aws", key, "Cg=="); err == nil {
		t.Error("a provider that is not listed")
	}
}
