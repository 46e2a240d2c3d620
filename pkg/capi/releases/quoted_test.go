package releases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// TestPartsAreProcessedAsTheWhole compares what the processor makes of parts of a text with what clusterctl's makes of all of it.
func TestPartsAreProcessedAsTheWhole(t *testing.T) {
	pieces := []string{
		"a: b\n", "\n---\n", "\n---", "---\n", "${A}", "${ B }", "${C:=c}", "${C:=other}", "${D}", "$${A}", "$$", "$", "pattern: ^x$\n", "'${A}'",
		`"${B}"`, "{", "}", "${A", "\x00", "é\n",
	}
	value := func(name string) (string, error) {
		if known, ok := map[string]string{"A": "one", "B": "two\n---\nthree"}[name]; ok {
			return known, nil
		}
		return "", errors.New("no value for " + name)
	}
	whole := yamlprocessor.NewSimpleProcessor()
	filled := 0
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		raw, p := []byte(b.String()), newProcessor()

		want, wantErr := p.process(raw, value)
		got, err := p.Process(raw, value)
		if diff := cmp.Diff([]string{string(want), fmt.Sprint(wantErr)}, []string{string(got), fmt.Sprint(err)}); diff != "" {
			t.Fatalf("Process(%q):\n%s", raw, diff)
		}
		if err == nil && string(got) != string(raw) {
			filled++
		}
		wantNamed, wantErr := whole.GetVariableMap(raw)
		named, err := p.GetVariableMap(raw)
		if diff := cmp.Diff(wantNamed, named); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("GetVariableMap(%q): %v, not %v\n%s", raw, err, wantErr, diff)
		}
		wantNames, wantErr := whole.GetVariables(raw)
		names, err := p.GetVariables(raw)
		if diff := cmp.Diff(wantNames, names); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("GetVariables(%q): %v, not %v\n%s", raw, err, wantErr, diff)
		}
	}
	if filled < 500 {
		t.Errorf("only %d texts were changed", filled)
	}
}
