package support

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Redacted stands where something secret stood, or may have.
const Redacted = "REDACTED"

// Redactor removes secrets from objects and texts: values under the name of a secret, text that looks like a key or a token, and every
// value of the cluster's Secrets, wherever it appears. In doubt, it removes a value.
type Redactor struct {
	replacer *strings.Replacer
}

const (
	// shortest is how long a value of a Secret must be to be looked for elsewhere: shorter ones are words.
	shortest = 8
	// longest values are certificates, archives and releases of Helm; they are looked for by their lines.
	longest = 16 << 10
)

// NewRedactor makes a Redactor that knows the values of Secrets. names are the names of objects. A Secret's value that is the name of an
// object is no secret.
func NewRedactor(values [][]byte, names map[string]bool) *Redactor {
	known := map[string]bool{}
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) < shortest || len(s) > longest || names[s] || public(s) {
			return
		}
		known[s] = true
		raw := []byte(s)
		known[base64.StdEncoding.EncodeToString(raw)] = true
		known[base64.RawURLEncoding.EncodeToString(raw)] = true
		for _, quoted := range []string{strings.ReplaceAll(s, `\`, `\\`), strings.ReplaceAll(s, `"`, `\"`), strings.ReplaceAll(s, "\n", `\n`)} {
			known[quoted] = true
		}
	}
	for _, v := range values {
		text := string(v)
		add(text)
		var document any
		if len(text) <= 1<<20 && json.Unmarshal(v, &document) == nil {
			eachText(document, add)
		}
		if len(text) <= 1<<20 {
			for line := range strings.Lines(text) {
				add(line)
				if _, value, ok := strings.Cut(line, ":"); ok {
					add(strings.Trim(strings.TrimSpace(value), `"'`))
				}
				if _, value, ok := strings.Cut(line, "="); ok {
					add(strings.Trim(strings.TrimSpace(value), `"'`))
				}
			}
		}
	}
	all := make([]string, 0, len(known))
	for k := range known {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b string) int { // the longer first: one may begin another
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(all))
	for _, k := range all {
		pairs = append(pairs, k, Redacted)
	}
	return &Redactor{replacer: strings.NewReplacer(pairs...)}
}

// eachText calls see with every text of a decoded document.
func eachText(v any, see func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			eachText(inner, see)
		}
	case []any:
		for _, inner := range v {
			eachText(inner, see)
		}
	case string:
		see(v)
	}
}

// public tells whether a line of a Secret is the same in every file of this kind, so that it is no secret.
func public(s string) bool {
	return strings.HasPrefix(s, "-----") ||
		slices.Contains([]string{"apiVersion: v1", "kind: Config", "clusters:", "contexts:", "current-context:", "preferences: {}"}, s) ||
		strings.HasPrefix(s, "kind: ") || strings.HasPrefix(s, "apiVersion: ") || strings.HasPrefix(s, "- name: ") ||
		strings.HasPrefix(s, "- cluster:") || strings.HasPrefix(s, "- context:")
}

// sensitive names what must not be shown, in a field, a variable, a flag or a parameter.
const sensitive = `(?:passw|passphrase|secret|token|credential|private[-_.]?key|api[-_.]?key|access[-_.]?key|account[-_.]?key|client[-_.]?key|signing[-_.]?key|encryption[-_.]?key|` +
	`certificate[-_.]?key|ssh[-_.]?key|bearer|authorization|auth[-_.]?header|kubeconfig|signature|cookie|dockerconfig|b64|session[-_.]?id|connection[-_.]?string|\bpwd\b|\bpass\b|\bpat\b|\bsig\b)`

var (
	sensitiveName = regexp.MustCompile(`(?i)` + sensitive)
	// refersTo are names of fields that name something that is elsewhere.
	refersTo = regexp.MustCompile(
		`(?i)(name|names|namespace|ref|refs|kind|type|mount|path|file|ttl|expiration|expires|expirationtimestamp|reason|count|enabled|required)$`)

	urlUser  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@"'<>]+@`)
	urlQuery = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>?]+)\?[^\s"'<>]+`)
	// assigned is NAME=value, name: value, "name": "value"; flagged is --name value.
	assigned = regexp.MustCompile(`(?i)([\w.\-/]*` + sensitive +
		`[\w.\-]*["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|(?:bearer|basic)\s+\S+|[^\s"'{}\[\]][^\s"']*)`)
	flagged  = regexp.MustCompile(`(?i)(--?[\w-]*` + sensitive + `[\w-]*\s+)("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	escaped  = regexp.MustCompile(`(?i)(\\"[\w.\-/]*` + sensitive + `[\w.\-]*\\"\s*:\s*)\\"(?:[^"\\]|\\[^"])*\\"`)
	bearer   = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	pemBlock = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----|$)`)
	// shapes of tokens and keys that their makers have made to be found.
	shapes = regexp.MustCompile(
		`\b(?:AGE-SECRET-KEY-1[A-Z0-9]+|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abpr]-[A-Za-z0-9-]{10,}|` +
			`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|[a-z0-9]{6}\.[a-z0-9]{16}|hvs\.[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{20,})`,
	)
	blockScalar = regexp.MustCompile(`(?i)^(\s*)(?:- )?["']?([\w.\-/]*` + sensitive + `[\w.\-]*)["']?\s*:\s*[|>][-+0-9]*\s*$`)
)

// Text is s without what is secret.
func (r *Redactor) Text(s string) string {
	if isKubeconfig(s) {
		return "(a kubeconfig: " + Redacted + ")"
	}
	s = pemBlock.ReplaceAllString(s, Redacted)
	if strings.Contains(s, "\n") {
		s = withoutBlocks(s)
	}
	s = r.replacer.Replace(s)
	s = urlUser.ReplaceAllString(s, "${1}"+Redacted+"@")
	s = urlQuery.ReplaceAllString(s, "${1}?"+Redacted)
	s = escaped.ReplaceAllString(s, `${1}\"`+Redacted+`\"`)
	s = assigned.ReplaceAllString(s, "${1}"+Redacted)
	s = flagged.ReplaceAllString(s, "${1}"+Redacted)
	s = bearer.ReplaceAllString(s, "${1} "+Redacted)
	return shapes.ReplaceAllString(s, Redacted)
}

func isKubeconfig(s string) bool {
	return strings.Contains(s, "client-key-data") || strings.Contains(s, "current-context") && strings.Contains(s, "clusters")
}

// withoutBlocks takes out the lines of a YAML block whose name is sensitive.
func withoutBlocks(s string) string {
	var out []string
	skip := -1
	for line := range strings.SplitSeq(s, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if skip >= 0 && (strings.TrimSpace(line) == "" || indent > skip) {
			continue
		}
		skip = -1
		if m := blockScalar.FindStringSubmatch(line); m != nil {
			skip = len(m[1])
			line = m[1] + m[2] + ": " + Redacted
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// Object is a copy of obj without what is secret. Of a Secret the names of its fields are left.
func (r *Redactor) Object(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	out.SetManagedFields(nil)
	annotations := out.GetAnnotations()
	for name := range annotations {
		if strings.HasSuffix(name, "last-applied-configuration") {
			annotations[name] = Redacted // all of the object once more, as one text
		}
	}
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	if out.GetKind() == "Secret" && out.GroupVersionKind().Group == "" {
		for _, field := range []string{"data", "stringData"} {
			values, _, _ := unstructured.NestedMap(out.Object, field)
			for name := range values {
				values[name] = Redacted
			}
			if len(values) > 0 {
				out.Object[field] = values
			}
		}
	}
	for field, value := range out.Object {
		if field != "apiVersion" && field != "kind" {
			out.Object[field] = r.value(field, value, false)
		}
	}
	return out
}

// Value is a decoded document without what is secret.
func (r *Redactor) Value(v any) any { return r.value("", v, false) }

// value removes secrets from a value under a name. all: the value is below a sensitive name, and is removed whatever its own name is.
func (r *Redactor) value(name string, v any, all bool) any {
	hidden := all || hides(name)
	switch v := v.(type) {
	case map[string]any:
		return r.fields(v, hidden && !isReference(v))
	case []any:
		return r.items(name, v, hidden)
	case string:
		switch {
		case v == "":
			return v
		case hidden && !refersTo.MatchString(name), all:
			return Redacted
		}
		return r.Text(v)
	case nil, bool:
		return v
	}
	if hidden && !refersTo.MatchString(name) {
		return Redacted // a number may be a password
	}
	return v
}

// hides tells whether the value under a name is secret. The start-up data of machines contains secrets, too.
func hides(name string) bool {
	return sensitiveName.MatchString(name) ||
		slices.Contains([]string{"userData", "user-data", "cloudConfig", "customData", "binaryData", "caBundle"}, name)
}

func (r *Redactor) fields(v map[string]any, all bool) map[string]any {
	out := make(map[string]any, len(v))
	label, _ := v["name"].(string)
	if label == "" {
		label, _ = v["key"].(string)
	}
	for name, inner := range v {
		hidden := all
		// {name: TOKEN, value: x}, as variables of containers and headers are; {path: /etc/x, content: y}, as files of machines are.
		if name == "value" && sensitiveName.MatchString(label) || name == "content" && (v["path"] != nil || v["encoding"] != nil) {
			hidden = true
		}
		out[r.replacer.Replace(name)] = r.value(name, inner, hidden)
	}
	return out
}

func (r *Redactor) items(name string, v []any, all bool) []any {
	out := make([]any, 0, len(v))
	for i, inner := range v {
		hidden := all
		if i > 0 { // --token x, as two arguments
			before, _ := v[i-1].(string)
			text, isText := inner.(string)
			hidden = hidden || isText && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && !strings.HasPrefix(text, "-") &&
				sensitiveName.MatchString(before)
		}
		if hidden {
			out = append(out, r.value("", inner, !isReferenceValue(inner)))
		} else {
			out = append(out, r.value(name, inner, false))
		}
	}
	return out
}

func isReferenceValue(v any) bool {
	m, ok := v.(map[string]any)
	return ok && isReference(m)
}

// isReference tells whether fields only name another object: {name, key}, {kind, name, namespace}.
func isReference(v map[string]any) bool {
	for name, value := range v {
		if !slices.Contains([]string{
			"name", "namespace", "kind", "key", "apiVersion", "apiGroup", "optional", "uid", "controller",
			"resourceVersion",
		}, name) {
			return false
		}
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return len(v) > 0 && v["name"] != nil
}

// YAML is a YAML file without what is secret; where it cannot be read, as text.
func (r *Redactor) YAML(src []byte) []byte {
	var v any
	if err := yaml.Unmarshal(src, &v); err == nil {
		if _, isMap := v.(map[string]any); isMap {
			if out, err := yaml.Marshal(r.Value(v)); err == nil {
				return out
			}
		}
	}
	return []byte(r.Text(string(src)))
}
