package support

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/guises"
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
	// longestEncoded is how long a value may be that is looked for in hexadecimal digits, and within the base64 of another text.
	longestEncoded = 512
)

// NewRedactor makes a Redactor that knows the values of Secrets. names are the names of objects. A Secret's value that is the name of an
// object is no secret.
func NewRedactor(values [][]byte, names map[string]bool) *Redactor {
	known := knownForms{forms: map[string]bool{}, names: names}
	for _, v := range values {
		text := string(v)
		known.add(text)
		if len(text) > 1<<20 {
			continue
		}
		var document any
		if json.Unmarshal(v, &document) == nil {
			eachText(document, known.add)
		}
		for line := range strings.Lines(text) {
			known.addLine(line)
			for _, between := range []string{":", "="} {
				if _, value, ok := strings.Cut(line, between); ok {
					known.add(strings.Trim(strings.TrimSpace(value), `"'`))
				}
			}
		}
	}
	return &Redactor{replacer: known.replacer()}
}

// knownForms are the texts to look for: the values of Secrets, and their other forms.
type knownForms struct {
	forms, names map[string]bool
}

// add adds a value. Of a long one, which is a key or a file, it leaves out the forms that are rare and long.
func (k knownForms) add(s string) {
	if s = k.addLine(s); s != "" && len(s) <= longestEncoded {
		k.take(guises.Encoded(s))
	}
}

// addLine adds a line of a value, and returns it without white space around it; "" if the line is no secret.
func (k knownForms) addLine(s string) string {
	if s = strings.TrimSpace(s); len(s) < shortest || len(s) > longest || k.names[s] || public(s) {
		return ""
	}
	raw := []byte(s)
	k.forms[s] = true
	k.take(guises.Escaped(s))
	k.take([]string{base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)})
	return s
}

func (k knownForms) take(forms []string) {
	for _, form := range forms {
		if len(form) >= shortest {
			k.forms[form] = true
		}
	}
}

// replacer removes each form. The longer forms come first, because one may begin another.
func (k knownForms) replacer() *strings.Replacer {
	all := slices.SortedFunc(maps.Keys(k.forms), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Redacted)
	}
	return strings.NewReplacer(pairs...)
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
	// wrapped is base64, or hexadecimal digits, in several lines.
	wrapped     = regexp.MustCompile(`(?:[A-Za-z0-9+/_-]{16,}(?:\\+r|\r)?(?:\\+n|\n)[ \t]*)+[A-Za-z0-9+/_-]+={0,2}`)
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
	s = wrapped.ReplaceAllStringFunc(s, r.withoutWrapped)
	s = urlUser.ReplaceAllString(s, "${1}"+Redacted+"@")
	s = urlQuery.ReplaceAllString(s, "${1}?"+Redacted)
	s = escaped.ReplaceAllString(s, `${1}\"`+Redacted+`\"`)
	s = assigned.ReplaceAllString(s, "${1}"+Redacted)
	s = flagged.ReplaceAllString(s, "${1}"+Redacted)
	s = bearer.ReplaceAllString(s, "${1} "+Redacted)
	return shapes.ReplaceAllString(s, Redacted)
}

// withoutWrapped is text in several lines, or what stands for it where the lines together have a secret in them.
func (r *Redactor) withoutWrapped(lines string) string {
	joined := string(guises.Joined([]byte(lines)))
	if r.replacer.Replace(joined) == joined {
		return lines
	}
	return Redacted
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
