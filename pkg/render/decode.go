package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kustypes "sigs.k8s.io/kustomize/api/types"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxStrangers is how many wrong fields of one file are reported.
const maxStrangers = 20

// kustFile is a kustomization.yaml as kustomize reads it. Kustomize takes the names of fields in any case, and takes fields from merge
// keys, so a plain YAML reader sees other fields than kustomize does. Therefore this code looks only at the decoded fields, and gives
// kustomize nothing else.
type kustFile struct {
	kustypes.Kustomization
	file string
	node *yaml.Node // the document, to point at
}

// at returns the place of a field, or of the nearest node around a missing field.
func (k *kustFile) at(path ...any) place { return placeOf(k.file, yamledit.Nearest(k.node, path...)) }

// CheckKustomization returns the reasons to refuse a kustomization.yaml, in any folder. It refuses a file that is no Kustomization. It also
// refuses a file that kustomize would not write back unchanged, because fleetctl and kustomize would read it differently.
func CheckKustomization(file string, src []byte) diag.Findings {
	_, findings := decodeKustomization(file, src)
	return findings
}

func decodeKustomization(file string, src []byte) (*kustFile, diag.Findings) {
	documents, err := yamledit.ParseWithin(src, Limits)
	if err != nil {
		return nil, diag.Findings{syntaxFinding(RuleSyntax, file, src, err)}
	}
	k := &kustFile{file: file, node: &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}}
	for i, n := range documents {
		switch {
		case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null": // an empty document
		case i > 0 && len(k.node.Content) > 0:
			return nil, diag.Findings{k.refused(n, RuleSyntax, "a kustomization.yaml is one document: kustomize reads no other",
				"move it into a file of its own, and name it under resources")}
		case n.Kind != yaml.MappingNode:
			return nil, diag.Findings{k.refused(n, RuleSyntax, "a kustomization.yaml is a list of fields", "")}
		default:
			k.node = n
		}
	}
	if len(k.node.Content) == 0 {
		return k, nil
	}
	if findings := k.strangers(k.node, reflect.TypeFor[kustypes.Kustomization](), ""); findings != nil {
		return nil, findings[:min(len(findings), maxStrangers)]
	}
	text, err := toJSON(src)
	if err != nil {
		return nil, diag.Findings{syntaxFinding(RuleSyntax, file, src, err)}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&k.Kustomization); err != nil {
		at := k.node
		summary := strings.TrimPrefix(err.Error(), "json: ")
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			path, _ := yamledit.ParsePath(wrong.Field) // an invalid path means the whole file
			at = yamledit.Nearest(k.node, path...)
			summary = fmt.Sprintf("%s: found %s where kustomize wants %s", wrong.Field, wrong.Value, wordFor(wrong.Type))
		}
		return nil, diag.Findings{k.refused(at, RuleKustomize, summary, "")}
	}
	return k, nil
}

// key returns the place of the name of a top-level field.
func (k *kustFile) key(field string) place {
	for i := 0; i+1 < len(k.node.Content); i += 2 {
		if k.node.Content[i].Value == field {
			return placeOf(k.file, k.node.Content[i])
		}
	}
	return k.at()
}

func wordFor(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the names of the other kinds fit
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "fields"
	case reflect.String:
		return "text"
	}
	return t.String()
}

func (k *kustFile) refused(n *yaml.Node, rule, summary, hint string) diag.Finding {
	return diag.Finding{Severity: diag.SeverityError, Rule: rule, File: k.file, Line: n.Line, Column: n.Column, Summary: summary, Hint: hint}
}

// strangers reports the fields below n that kustomize's type would not write back: fields that the type lacks, fields in another case, and
// merge keys.
func (k *kustFile) strangers(n *yaml.Node, t reflect.Type, path string) (findings diag.Findings) {
	n = yamledit.Resolve(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n.Kind { //nolint:exhaustive // a scalar has nothing in it
	case yaml.SequenceNode:
		if t.Kind() == reflect.Slice {
			for i, item := range n.Content {
				findings = append(findings, k.strangers(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			name := yamledit.Resolve(key).Value
			at := strings.TrimPrefix(path+"."+name, ".")
			if name == "<<" {
				findings = append(findings, k.refused(key, RuleField, at+": merge keys are not taken in a kustomization.yaml",
					"write the fields out where they are used"))
				continue
			}
			field, known := fieldOf(t, name)
			if field == nil {
				findings = append(findings, k.refused(key, RuleField, at+": there is no such field", suggestion(name, known)))
				continue
			}
			findings = append(findings, k.strangers(n.Content[i+1], field, at)...)
		}
	}
	return findings
}

// fieldOf returns the type of the field with exactly this JSON name. It returns nil if there is no such field. known are the names of all
// fields.
func fieldOf(t reflect.Type, name string) (field reflect.Type, known []string) {
	switch t.Kind() { //nolint:exhaustive // the decoder refuses other values
	case reflect.Map:
		return t.Elem(), nil
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case !f.IsExported() || f.Anonymous && tag == "" || tag == "-":
			case tag == name || tag == "" && f.Name == name:
				return f.Type, nil
			default:
				known = append(known, tag)
			}
		}
		return nil, known
	}
	return t, nil
}

func suggestion(name string, known []string) string {
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		return "write it as " + known[i]
	}
	if nearest := diag.Nearest(name, known); nearest != "" {
		return "did you mean " + nearest + "?"
	}
	if len(known) > 0 && len(known) <= 20 {
		return "known here: " + strings.Join(known, ", ")
	}
	return ""
}
