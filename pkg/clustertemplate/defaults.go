package clustertemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drone/envsubst/v2/parse"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

func hasDefault(n *parse.FuncNode) bool { return n.Name == "=" || n.Name == ":=" || n.Name == ":-" }

// defaults are the texts that stand for the variable; where they differ, or hold other variables, each use has its own.
func (v *variable) defaults(uses []*use) []string {
	var all []string
	for _, u := range uses {
		if !hasDefault(u.node) {
			continue
		}
		var b strings.Builder
		for _, arg := range u.node.Args {
			a, ok := arg.(*parse.TextNode)
			if !ok {
				v.inline = true
				return nil
			}
			b.WriteString(a.Value)
		}
		text := b.String()
		if len(all) > 0 && all[0] != text {
			v.inline = true
			return all
		}
		all = []string{text}
	}
	return all
}

// typed is a default as a value, and sets what the variable may be by it.
func (v *variable) typed(text string, uses []*use) any {
	whole, some := true, false
	for _, u := range uses {
		whole, some = whole && u.whole, some || u.whole
		v.raw = v.raw || u.whole && u.flow && strings.Contains(text, ",")
	}
	decoded, err := decode(text)
	if err != nil || v.raw {
		v.raw = v.raw || errors.Is(err, errLarge)
		v.limit("string")
		return text
	}
	if !some {
		if _, isText := decoded.(string); isText || quoted(uses) {
			v.limit("string")
		} else if v.types == nil {
			v.types = anyScalar
		}
		return text
	}
	if !whole && fmt.Sprint(decoded) != text { // its text counts elsewhere
		v.raw = true
		v.limit("string")
		return text
	}
	switch decoded.(type) {
	case nil:
		v.raw = true
		v.types = anyScalar
		return ""
	case bool:
		v.limit("boolean")
	case int:
		v.limit("integer")
	case float64:
		v.limit("number")
	case string:
		v.limit("string")
	case []any:
		v.limit("array")
	case map[string]any:
		v.limit("object")
	default: // a date, which JSON has none of
		v.raw = true
		v.limit("string")
		return text
	}
	return decoded
}

// errLarge says of a default that it is a number, and that Helm would not keep all of its digits.
var errLarge = errors.New("the number is too large for Helm")

// decode reads a default as YAML. What JSON has none of, such as .inf, is an error: it is text.
func decode(text string) (value any, err error) {
	nodes, err := yamledit.Parse([]byte(text)) // within limits
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	if err := nodes[0].Decode(&value); err != nil {
		return nil, err
	}
	if _, err := json.Marshal(value); err != nil {
		return nil, err
	}
	const exact = 1 << 53 // Helm reads numbers as floating point ones
	if n, ok := value.(int); ok && (n > exact || n < -exact) {
		return nil, errLarge
	}
	return value, nil
}

// limit says what a variable may be, where nothing has yet.
func (v *variable) limit(kind string) {
	if v.types == nil {
		v.types = []string{kind}
	}
}

// isFixed tells of the variables whose type is the same in each chart, because fleetctl changes them itself.
func (v *variable) isFixed() bool {
	return v.name == kubernetesVersion || v.name == controlPlaneCount || v.name == workerCount
}

// decideFixed takes a default of a variable with a fixed type as that type, or refuses it.
func (t *translation) decideFixed(v *variable, out *Variable, uses []*use, defaults []string) {
	var text string
	if hasDefault(uses[0].node) && len(defaults) > 0 {
		text = plainText(defaults[0])
	}
	if v.inline {
		t.fault(out.Line, "give it one default in all places, or none", "${%s} has no single default, and the chart's value has one", v.name)
	}
	v.inline = false
	if v.name == kubernetesVersion {
		v.types, out.types, out.Required = []string{"string"}, []string{"string"}, text == ""
		if text != "" {
			out.Default = text
		}
		if text != "" && !versionShape.MatchString(text) {
			t.fault(out.Line, "write a version such as v1.30.0, or leave the default out",
				"${%s}: its default %.40q is no version of Kubernetes", v.name, text)
		}
		return
	}
	count := least(v.name) // as clusterctl has it
	if text != "" {
		given, err := strconv.ParseInt(text, 10, 32)
		if err != nil || strconv.FormatInt(given, 10) != text || int(given) < count {
			t.fault(out.Line, "write a number, or leave the default out",
				"${%s}: its default %.40q is no whole number from %d on", v.name, text, count)
		}
		count = int(given)
	}
	v.types, out.types, out.Default = []string{"integer"}, []string{"integer"}, count
}

// least is the smallest count that a variable may be, and what it is by itself.
func least(name string) int {
	if name == controlPlaneCount {
		return 1
	}
	return 0
}

// versionPattern is what a version of Kubernetes looks like.
const versionPattern = `^v1\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`

var versionShape = regexp.MustCompile(versionPattern)

// plainText is a scalar as its text, without quotes; a text that is none is as it is written.
func plainText(text string) string {
	if n := scalarOf(text); n != nil {
		if n.ShortTag() == "!!null" {
			return ""
		}
		return strings.TrimSpace(n.Value)
	}
	return strings.TrimSpace(text)
}

// scalarOf reads a default; nil where it is no scalar.
func scalarOf(text string) *yaml.Node {
	nodes, err := yamledit.Parse([]byte(text))
	if err != nil || len(nodes) != 1 || nodes[0].Kind != yaml.ScalarNode {
		return nil
	}
	return nodes[0]
}

// isCredential tells of a variable that is a password, a token or the like, by its name. Its default, and one that looks like a credential
// whatever the name is, is refused: it would be in Git in clear.
func (t *translation) isCredential(name string, uses []*use) bool {
	look := name
	if !slices.ContainsFunc(uses, func(u *use) bool { return !u.namesObject() }) {
		look = "name" // only what looks like a credential whatever it is called
	}
	is, refused := v1alpha1.NamesSecret(look), map[int]bool{}
	for _, u := range uses {
		for _, arg := range u.node.Args {
			a, ok := arg.(*parse.TextNode)
			if !ok || !hasDefault(u.node) {
				continue
			}
			if !v1alpha1.LooksSecret(look, strings.Trim(strings.TrimSpace(a.Value), `"'`)) || plainText(a.Value) == "" {
				continue
			}
			if n := scalarOf(a.Value); n != nil && n.ShortTag() == "!!bool" {
				return false // it switches something on
			}
			if !refused[u.line] {
				refused[u.line] = true
				t.fault(u.line, "leave the default out, or let the object refer to a Secret",
					"${%s}: its default looks like a credential, and a chart is in Git in clear", name)
			}
		}
	}
	return is
}

// namesObject tells whether the variable is the name of an object, such as a Secret, and so not what the Secret contains.
func (u *use) namesObject() bool { return u.whole && (u.field == "name" || u.field == "secretName") }
