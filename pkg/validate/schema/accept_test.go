package schema

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// modules adds the CRDs of Cluster API, from its module.
func (s *Set) modules(t testing.TB) {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*", "config", "crd", "bases", "*.yaml"))
	more, err2 := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*", "*", "config", "crd", "bases", "*.yaml"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(file, content); err != nil {
			t.Fatal(err)
		}
	}
}

// golden is an object that a chart makes, and the file that has it.
type golden struct {
	file   string
	object map[string]any
}

// goldens are the objects that the charts make.
func goldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob("../../../templates/testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	var out []golden
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range Documents(content) {
			encoded, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatal(err)
			}
			if o := fromJSON(t, encoded); o != nil {
				out = append(out, golden{file, o})
			}
		}
	}
	return out
}

// Every object that the fast way accepts, the API machinery accepts as well, after any change to the object. The fast way accepts nearly
// all valid objects.
func TestAcceptor(t *testing.T) {
	s := widgets(t)
	s.modules(t)
	objects := append(goldens(t), golden{"widget", object(t, head+`
spec: {size: small, replicas: 3, code: abc, labels: {a: b}, free: {x: [1]}, zones: [a, b], pools: [{name: x}], port: 80, anything: {x: [1]}}
`)})
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	judged, valid, taken := 0, 0, 0
	for _, g := range objects {
		o := g.object
		gvk := (&unstructured.Unstructured{Object: o}).GroupVersionKind()
		known := s.kinds[gvk.GroupKind()]
		if known == nil {
			continue
		}
		v, err := known.version(t.Context(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		for try := range 50 {
			changed := runtime.DeepCopyJSON(o)
			if try > 0 { // the first try leaves it as it is
				spoil(random, changed)
			}
			judged++
			slow, err := v.check(t.Context(), runtime.DeepCopyJSON(changed))
			if err != nil {
				t.Fatal(err)
			}
			if len(slow) == 0 {
				valid++
			}
			if !v.acceptor.accepts(changed) {
				continue
			}
			taken++
			if fast, err := v.checkRest(t.Context(), runtime.DeepCopyJSON(changed)); err != nil || !reflect.DeepEqual(fast, slow) {
				t.Fatalf("%s: %v (%v), and the API machinery says %v\n%v", gvk.Kind, fast, err, slow, changed)
			}
		}
	}
	t.Logf("%d objects, %d valid, %d of them taken", judged, valid, taken)
	if judged < 1000 || valid < 200 || taken < valid*8/10 {
		t.Errorf("%d objects, %d valid, %d of them taken", judged, valid, taken)
	}
}

// spoil changes one value somewhere in an object.
func spoil(random *rand.Rand, object map[string]any) {
	var spots []func(any)
	var visit func(value any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				spots = append(spots, func(other any) {
					if other == gone {
						delete(value, name)
						return
					}
					value[name] = other
				})
				visit(value[name])
			}
		case []any:
			for i := range value {
				spots = append(spots, func(other any) {
					if other != gone {
						value[i] = other
					}
				})
				visit(value[i])
			}
		}
	}
	visit(object["spec"])
	visit(object["metadata"])
	if len(spots) == 0 {
		return
	}
	others := []any{
		gone, gone, nil, "", "x", "UPPER_case", strings.Repeat("long", 100), int64(-1), int64(0), int64(1), int64(1) << 40, 1.5, true, false,
		[]any{},
		[]any{"a", "a"},
		map[string]any{},
		map[string]any{"a": "b"},
		"10s", "2026-01-01T00:00:00Z", "50%",
	}
	spots[random.IntN(len(spots))](runtime.DeepCopyJSONValue(others[random.IntN(len(others))]))
}

// gone takes a field away.
const gone = "\x00gone"
