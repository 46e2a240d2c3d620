package schema

import (
	"errors"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func widgets(t testing.TB) *Set {
	t.Helper()
	content, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet()
	added, err := s.Add("widgets.yaml", content)
	if err != nil || added != 1 {
		t.Fatalf("added %d CRDs: %v", added, err)
	}
	return s
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return fromJSON(t, content)
}

const head = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\n"

func TestCheck(t *testing.T) {
	s := widgets(t)
	for name, tt := range map[string]struct {
		object string
		want   []string // "type path: summary (hint)"
	}{
		"valid": {
			head + "spec: {size: small, replicas: 3, free: {any: thing}, labels: {a: b}, pools: [{name: one}, {name: two}]}",
			nil,
		},
		"unknown field": {
			head + "spec: {size: small, replicaz: 3}",
			[]string{"unknown field spec.replicaz: there is no such field (did you mean replicas?)"},
		},
		"unknown in items": {
			head + "spec: {size: small, pools: [{name: x, replica: 1}]}",
			[]string{"unknown field spec.pools[0].replica: there is no such field (did you mean replicas?)"},
		},
		"unknown in meta": {
			strings.Replace(head, "name: a", "name: a, lables: {}", 1) + "spec: {size: small}",
			[]string{"unknown field metadata.lables: there is no such field (did you mean labels?)"},
		},
		"unknown at top": {head + "spec: {size: small}\nsped: {}", []string{"unknown field sped: there is no such field (did you mean spec?)"}},
		"wrong type": {
			head + "spec: {size: small, replicas: three}",
			[]string{`wrong type spec.replicas: must be of type integer: "string"`},
		},
		"missing": {head + "spec: {}", []string{"required spec.size: required, and missing"}},
		"enum": {
			head + "spec: {size: smal}",
			[]string{`invalid spec.size: "smal" is not among the supported values: "small", "medium", "large" (did you mean small?)`},
		},
		"pattern":        {head + "spec: {size: small, code: abcd}", []string{"invalid spec.code: should match '^[a-z]{3}$'"}},
		"maximum":        {head + "spec: {size: small, replicas: 11}", []string{"invalid spec.replicas: should be less than or equal to 10"}},
		"rule, defaults": {head + "spec: {size: small, min: 4}", []string{"rule spec: min is more than max"}},
		"rule in items":  {head + "spec: {size: small, pools: [{name: x, replicas: 0}]}", []string{"rule spec.pools[0]: a pool has nodes"}},
		"map keys":       {head + "spec: {size: small, pools: [{name: x}, {name: x}]}", []string{"duplicate spec.pools[1]: is there twice"}},
		"set":            {head + "spec: {size: small, zones: [a, b, a]}", []string{"duplicate spec.zones[2]: is there twice"}},
		"name": {
			strings.Replace(head, "name: a", "name: A_b", 1) + "spec: {size: small}",
			[]string{"metadata metadata.name: a lowercase RFC 1123 subdomain"},
		},
		"label": {
			strings.Replace(head, "name: a", "name: a, labels: {a: b c}", 1) + "spec: {size: small}",
			[]string{"metadata metadata.labels[a]: a valid label must be"},
		},
		"deprecated": {
			"apiVersion: example.com/v1beta1\nkind: Widget\nmetadata: {name: a}\nspec: {any: thing}",
			[]string{"deprecated apiVersion: example.com/v1beta1 Widget is deprecated, use v1"},
		},
		"not served": {
			"apiVersion: example.com/v1alpha1\nkind: Widget\nmetadata: {name: a}",
			[]string{"version apiVersion: Widget.example.com has no version v1alpha1 (served are: v1, v1beta1)"},
		},
		"Flux's own, alert": {
			"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: a, namespace: b}\n" +
				"spec: {providerReff: {name: a}, eventSeverity: warning, eventSources: [{kind: Kustomization, name: '*'}]}",
			[]string{
				"unknown field spec.providerReff: there is no such field (did you mean providerRef?)",
				`invalid spec.eventSeverity: "warning" is not supported (one of: info, error)`,
			},
		},
		"Flux's own, image policy": {
			"apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\nmetadata: {name: a, namespace: b}\n" +
				"spec: {imageRepositoryRef: {name: a}, policy: {semver: {range: 1.x}}}",
			nil,
		},
		"Flux's own, missing": {
			"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\nmetadata: {name: a, namespace: b}\nspec: {channel: a}",
			[]string{"required spec.type: required"},
		},
		"Flux's own, version": {
			"apiVersion: image.toolkit.fluxcd.io/v1beta2\nkind: ImageRepository\nmetadata: {name: a, namespace: b}\nspec: {}",
			[]string{"version apiVersion: ImageRepository.image.toolkit.fluxcd.io has no version v1beta2 (there are: v1)"},
		},
		"built in": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: b}", nil},
		"built in, field": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec: {replicaz: 1}", []string{
			"unknown field spec.replicaz: there is no such field (did you mean replicas?)", "required spec.selector: required",
			"required spec.template: required",
		}},
		"built in, deep": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec: {template: {spec: {containers: " +
			"[{name: a, imag: b}]}}}", []string{
			"unknown field spec.template.spec.containers[0].imag: there is no such field (did you mean image?)", "required spec.selector: required",
		}},
		"built in, enum": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec: {type: LoadBalance, ports: [{port: 80}]}",
			[]string{`invalid spec.type: "LoadBalance" is not supported (did you mean LoadBalancer?)`},
		},
		"built in, range": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec: {ports: [{port: 70000}]}",
			[]string{"invalid spec.ports[0].port: 70000 is more than 65535"},
		},
		"built in, less": {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: b}\nspec: " +
			"{maxReplicas: -1, scaleTargetRef: {kind: Deployment, name: a}}", []string{"invalid spec.maxReplicas: -1 is less than 1"}},
		"built in, required": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: b}\nsubjects: " +
			"[{kind: user, name: x}]", []string{
			"required roleRef: required field is missing",
			`invalid subjects[0].kind: "user" is not supported (did you mean User?)`,
		}},
		"built in, empty": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: []}",
			[]string{"required spec.containers: required"},
		},
		"flux, required": {"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\nspec: {prune: " +
			"true, sourceRef: {kind: GitRepo, name: x}}", []string{
			"required spec.interval: required",
			`invalid spec.sourceRef.kind: "GitRepo" is not supported (did you mean GitRepository?)`,
		}},
		"built in, type": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec: {replicas: many}",
			[]string{"wrong type spec.replicas: found text, expected a whole number"},
		},
		"built in, name": {
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}",
			[]string{"metadata metadata.name: must not contain dots"},
		},
		"role, name": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: \"system:a\", namespace: b}", nil},
		"flux": {"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\nspec: {interval: " +
			"1m, pathh: x, prune: true, sourceRef: {kind: GitRepository, name: x}}", []string{"unknown field spec.pathh: there is no such field " +
			"(did you mean path?)"}},
		"built in version": {
			"apiVersion: apps/v3\nkind: Deployment\nmetadata: {name: a}",
			[]string{"version apiVersion: Deployment.apps has no version v3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := s.Check(t.Context(), object(t, tt.object))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range problems {
				text := string(p.Type) + " " + p.Path + ": " + p.Summary
				if p.Hint != "" {
					text += " (" + p.Hint + ")"
				}
				got = append(got, text)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestCheckUnknownKind(t *testing.T) {
	_, err := NewSet().Check(t.Context(), object(t, head+"spec: {}"))
	if !errors.Is(err, ErrUnknownKind) {
		t.Errorf("got %v", err)
	}
}

// The groups of Kubernetes itself are known whole: a kind that they do not have is a mistake, and none that is not known.
func TestCheckMisspeltKind(t *testing.T) {
	for _, tt := range []struct{ head, summary, hint string }{
		{"apiVersion: v1\nkind: ConfigMpa\n", "v1 has no kind ConfigMpa", "did you mean ConfigMap?"},
		{"apiVersion: apps/v1\nkind: Deploymnet\n", "apps/v1 has no kind Deploymnet", "did you mean Deployment?"},
		{"apiVersion: v1\nkind: Widget\n", "v1 has no kind Widget", ""},
		{
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolcy\n", "networking.k8s.io/v1 has no kind NetworkPolcy",
			"did you mean NetworkPolicy?",
		},
	} {
		problems, err := NewSet().Check(t.Context(), object(t, tt.head+"metadata: {name: a, namespace: b}"))
		if err != nil || len(problems) != 1 || problems[0].Summary != tt.summary || problems[0].Hint != tt.hint {
			t.Errorf("%s: %+v, %v", tt.head, problems, err)
		}
	}
	for _, head := range []string{
		"apiVersion: networking.k8s.io/v1\nkind: Newcomer\n", "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\n",
		"apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\n",
	} {
		if _, err := NewSet().Check(t.Context(), object(t, head+"metadata: {name: a}")); !errors.Is(err, ErrUnknownKind) {
			t.Errorf("%s: %v", head, err)
		}
	}
}

// What an object is given to be checked it has to be afterwards: others look at it too.
func TestCheckChangesNothing(t *testing.T) {
	s := widgets(t)
	o := object(t, head+"spec: {size: small, replicaz: 3}")
	if _, err := s.Check(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	spec, ok := o["spec"].(map[string]any)
	if !ok || len(spec) != 2 {
		t.Errorf("it is %v now", o)
	}
}

func TestAddBroken(t *testing.T) {
	s := NewSet()
	for name, text := range map[string]string{
		"syntax":  "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nspec: [",
		"version": "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1beta1\nspec: {}",
	} {
		if _, err := s.Add(name, []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Lists as people edit them, and as nobody would: what is no CRD in one is passed over.
func TestAddList(t *testing.T) {
	crd := "{metadata: {name: as.b}, spec: {group: b, names: {kind: A, plural: as}, scope: Cluster}}"
	for name, tt := range map[string]struct {
		items string
		want  int
	}{
		"null": {"[null]", 0}, "null beside one": {"[null, " + crd + ", null]", 1}, "no list": {"null", 0}, "a map": {"{a: b}", 0},
		"empty": {"[{}]", 0}, "nothing in it": {"[{metadata: null, spec: null}]", 0},
		"null versions": {"[{spec: {group: b, names: {kind: A}, versions: [null]}}]", 1},
	} {
		for _, kind := range []string{"CustomResourceDefinitionList", "List"} {
			want := tt.want
			if kind == "List" { // whose items say what they are
				want = 0
			}
			added, err := NewSet().Add(name,
				[]byte("apiVersion: apiextensions.k8s.io/v1\nkind: "+kind+"\nitems: "+tt.items+" # CustomResourceDefinition\n"))
			if err != nil || added != want {
				t.Errorf("%s of %s: added %d: %v", kind, name, added, err)
			}
		}
	}
}

// A CRD that no API server takes is told as such, by all objects in the same words, and not as an error of theirs.
func TestBrokenCRD(t *testing.T) {
	for name, tt := range map[string]struct{ spec, want string }{
		"a rule of a field that is not there": {"type: object, x-kubernetes-validations: [{rule: 'self.nope > 1'}]", "undefined field 'nope'"},
		"a rule that is none":                 {"type: object, x-kubernetes-validations: [{rule: 'self ((('}]", "Syntax error"},
		"a rule in items": {
			"type: object, properties: {a: {type: array, items: {type: string, x-kubernetes-validations: [{rule: 'self > 1'}]}}}",
			"the rule of spec.a[]: ",
		},
		"no type":   {"properties: {a: {type: string}}", "must not be empty"},
		"reference": {"type: string, $ref: 'file:///etc/passwd'", "'$ref' is not supported"},
	} {
		s := NewSet()
		crd := strings.Replace(smallCRD, "type: object, x-kubernetes-preserve-unknown-fields: true",
			"type: object, properties: {spec: {"+tt.spec+"}}", 1)
		if _, err := s.Add("crd.yaml", []byte(crd)); err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for _, spec := range []string{"{}", "{a: [x]}", "{a: [x, z]}"} {
			problems, err := s.Check(t.Context(), object(t, "apiVersion: b/v1\nkind: A\nmetadata: {name: a}\nspec: "+spec))
			for _, p := range problems {
				if p.Type != Unknown {
					t.Errorf("%s: %v", name, p)
				}
			}
			if err == nil {
				continue
			}
			said[err.Error()] = true
			broken, ok := errors.AsType[*BrokenError](err)
			if !ok || broken.Origin != "crd.yaml" || broken.Name != "as.b" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(said) != 1 {
			t.Errorf("%s: said are %v", name, said)
		}
	}
}
