package fleetrepo

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A mistake in a chart's schema is reported once, at its place in the schema, and without a path of this machine.
func TestWrongSchema(t *testing.T) {
	for name, test := range map[string]struct{ schema, want string }{
		"a type that is none": {"{\n  \"type\": \"nope\"\n}\n", ":2:11: the chart cannot be read: value must be one of"},
		"a number":            {"{\"properties\": {\n \"a\": 5}}", ":2:7: the chart cannot be read: got number, want boolean or object"},
		"in a list":           {"{\"anyOf\": [\n {},\n {\"type\": 5}]}", ":3:11: the chart cannot be read: "},
		"a pattern":           {"{\"properties\": {\"a\": {\n\"pattern\": \"(\"}}}", ":2:12: the chart cannot be read: '(' is not valid regex"},
		"another file":        {`{"$ref": "other.json"}`, ":1: the chart cannot be read: it refers to other.json, but only the schema"},
		"a file outside":      {`{"$ref": "file:///etc/passwd"}`, ":1: the chart cannot be read: it refers to file:///etc/passwd, but only the schema"},
		"another server":      {`{"$ref": "http://127.0.0.1:1/x"}`, ":1: the chart cannot be read: it refers to http://127.0.0.1:1/x, but only the schema"},
		"nowhere":             {`{"$ref": "#/nope"}`, ":1: the chart cannot be read: it refers to #/nope, which is not there"},
		"an anchor":           {`{"$ref": "#nope"}`, ":1: the chart cannot be read: "},
		"a list":              {"[]", ":1: the chart cannot be read: a schema is an object, or true or false"},
		"nothing":             {"", ":1: the chart cannot be read: it is not JSON"},
		"cut":                 {"{\n\"type\":\n", ":3: the chart cannot be read: it is not JSON"},
		"two":                 {"{}\n{}", "the chart cannot be read: it is not JSON: it has more text after its end"},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			write(t, r.Dir, "charts/in-memory/Chart.yaml", []byte("apiVersion: v2\nname: in-memory\nversion: 0.1.0\n"))
			write(t, r.Dir, "charts/in-memory/values.schema.json", []byte(test.schema))
			_, err := reopen(t, r.Dir).chart("in-memory")
			if err == nil || !strings.HasPrefix(err.Error(), "charts/in-memory/values.schema.json"+test.want) &&
				!(strings.HasPrefix(test.want, "the ") && strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), r.Dir) || strings.Contains(err.Error(), "chart:") || strings.Contains(err.Error(), "fleetrepo") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A schema may be true, which accepts all values, or false, which accepts none.
func TestBooleanSchema(t *testing.T) {
	for schema, refused := range map[string]bool{"true": false, " false\n": true} {
		r := open(t)
		write(t, r.Dir, "charts/in-memory/Chart.yaml", []byte("apiVersion: v2\nname: in-memory\nversion: 0.1.0\n"))
		write(t, r.Dir, "charts/in-memory/values.schema.json", []byte(schema))
		c, err := reopen(t, r.Dir).chart("in-memory")
		if err != nil {
			t.Fatalf("%s: %v (%s)", schema, err, diag.Hint(err))
		}
		if !refused {
			if c.compiled != nil {
				t.Error("true is a schema that judges")
			}
			continue
		}
		if failed, err := c.compiled.Judge(map[string]any{}); err != nil || failed == nil {
			t.Errorf("%s: %v, %v", schema, failed, err)
		}
	}
}
