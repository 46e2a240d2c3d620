package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"
)

type inner struct {
	Names []string          `json:"names"`
	Left  []string          `json:"left,omitempty"`
	Gone  []string          `json:"gone,omitzero"`
	Given map[string]string `json:"given"`
}

type embedded struct {
	Places []string `json:"places"`
}

type outer struct {
	embedded

	Embeds  inner            `json:"embeds"`
	Pointer *inner           `json:"pointer"`
	None    *inner           `json:"none"`
	All     []inner          `json:"all"`
	By      map[string]inner `json:"by"`
	Any     any              `json:"any"`
	Object  map[string]any   `json:"object"`
	Bytes   []byte           `json:"bytes"`
	Raw     json.RawMessage  `json:"raw"`
	At      time.Time        `json:"at"`

	hidden []string
}

// Programs iterate over lists, also over those that have nothing in them.
func TestListsAreNoNulls(t *testing.T) {
	result := outer{
		Pointer: &inner{}, All: []inner{{}}, By: map[string]inner{"x": {}}, Any: &inner{}, Object: map[string]any{"null": nil, "list": []any(nil)},
		Raw: json.RawMessage(`null`), At: time.Unix(0, 0).UTC(),
	}
	const empty = `{"names":[],"given":{}}`
	want := `{"places":[],"embeds":` + empty + `,"pointer":` + empty + `,"none":null,"all":[` + empty + `],"by":{"x":` + empty +
		`},"any":` + empty + `,"object":{"list":null,"null":null},"bytes":null,"raw":null,"at":"1970-01-01T00:00:00Z"}`
	for _, given := range []any{result, &result} {
		var out bytes.Buffer
		if err := Print(Streams{Out: &out}, JSON, given, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, out.Bytes()); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("got  %s\nwant %s", got.String(), want)
		}
	}
	if result.Pointer.Names != nil || result.hidden != nil {
		t.Error("the result itself was changed")
	}
}
