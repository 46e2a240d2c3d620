package schema

import (
	"testing"

	"sigs.k8s.io/json"
)

// fromJSON reads an object as the API machinery does.
func fromJSON(t testing.TB, content []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
