//go:build e2e

package handover

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// canary is in every Secret of every fleet. It may be in Secrets, which are handed over, and nowhere else. Its characters are those that
// encodings change.
const canary = `canary/+&<>"\%7f3a9c51e2-d04b`

var betrays = traces.Of(canary)

// hideCanary puts the canary into each value of a Secret, at its end, where it is a comment in YAML. Names of users stay.
func hideCanary(t testing.TB, secret *unstructured.Unstructured) {
	t.Helper()
	values, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for name, value := range values {
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		if name != "username" {
			values[name] = base64.StdEncoding.EncodeToString(append(plain, " # "+canary...))
		}
	}
	if len(values) == 0 {
		return
	}
	if err := unstructured.SetNestedStringMap(secret.Object, values, "data"); err != nil {
		t.Fatal(err)
	}
}

// tellsNothing looks for the canary in what a run said, in its arguments and its environment, and in all that it has left on its machine.
// The snapshot of a test's own program is in clear.
func tellsNothing(t testing.TB, cmd *exec.Cmd, output, machine string) {
	t.Helper()
	if betrays.Within([]byte(output)) {
		t.Errorf("the canary is in what it said:\n%s", output)
	}
	if betrays.In([]byte(strings.Join(append(cmd.Env, cmd.Args...), "\x00"))) {
		t.Error("the canary is in the arguments or the environment")
	}
	err := filepath.WalkDir(machine, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!d.Type().IsRegular() || d.Name() == snapshotFile) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if betrays.Within(content) {
			t.Errorf("the canary is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// hidesCanary looks for the canary in all objects of a side but the Secrets that a fleet has. The journal of a hand-over is in one, too.
func (s snapshot) hidesCanary(t testing.TB, where string) {
	t.Helper()
	holders, secrets := 0, 0
	for i, obj := range s {
		content, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		own := i.namespace == handover.JournalKey.Namespace
		if i.kind == "Secret" && !own {
			secrets++
		}
		switch found := betrays.Within(content); {
		case found && (i.kind != "Secret" || own):
			t.Errorf("the canary is in %s at %s", i, where)
		case found:
			holders++
		}
	}
	if where == "the source" && holders == 0 && secrets > 0 { // the release of a source may have taken them all before its Clusters
		t.Error("the canary is in no Secret of a source with Secrets: this does not find what it looks for")
	}
}
