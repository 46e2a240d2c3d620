package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/envsubst"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// substituteKey, as a label or annotation, keeps an object from being changed by postBuild.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`) })

// variables are the values that postBuild fills in. open says that there are more variables, which are secret or not in the repo. Then a
// variable without a known value stays as it is written.
type variables struct {
	values map[string]string
	open   bool
	always bool
	// absent are the optional ConfigMaps that are not in the repo.
	absent []string
	// made is the size of all objects of the Kustomization after their variables are filled in, in bytes.
	made int
}

// maxFilled is the largest size of all objects of a Kustomization together, with their variables filled in.
const maxFilled = 64 << 20

// variablesOf returns the variables of a Kustomization's postBuild. lookup finds the data of a ConfigMap in its namespace.
func variablesOf(
	k *Kustomization,
	post *kustomizev1.PostBuild,
	lookup func(name string) (map[string]string, bool),
) (*variables, diag.Findings) {
	if post == nil {
		return nil, nil
	}
	v := &variables{values: map[string]string{}, always: post.SubstituteStrategy == kustomizev1.SubstituteStrategyAlways}
	var findings diag.Findings
	add := func(severity diag.Severity, summary, hint string) {
		findings = append(findings, diag.Finding{
			Severity: severity, Rule: RuleSubstitute, File: k.Source.File, Line: k.Source.Line,
			Summary: k.Owner.String() + ": " + summary, Hint: hint,
		})
	}
	for _, from := range post.SubstituteFrom {
		if from.Kind == "Secret" {
			v.open = true
			add(diag.SeverityWarning, fmt.Sprintf("the values of Secret %s are never read: its variables stay as they are", from.Name), "")
			continue
		}
		data, ok := lookup(from.Name)
		switch {
		case ok:
			for name, value := range data {
				v.values[name] = strings.ReplaceAll(value, "\n", "")
			}
		case from.Optional:
			v.absent = append(v.absent, from.Name)
		default:
			v.open = true
			add(diag.SeverityWarning, fmt.Sprintf("ConfigMap %s is not in the repo: its variables stay as they are", from.Name), "")
		}
	}
	for name, value := range post.Substitute {
		v.values[name] = strings.ReplaceAll(value, "\n", "")
	}
	for name := range v.values {
		if !variableName().MatchString(name) {
			add(diag.SeverityError, fmt.Sprintf("%q is no name of a variable", name), "use letters, digits and _")
		}
	}
	return v, findings
}

// replaces matches variables that replace parts of their values, so that the values may grow.
var replaces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}/]*/`) })

// fill fills in the variables of a text. It returns an error if the text becomes too large.
func (v *variables) fill(before string) (string, error) {
	size, grows, largest := len(before), replaces().MatchString(before), ""
	text, err := envsubst.Eval(before, func(name string) (string, bool) {
		value, ok := v.values[name]
		if !ok && v.open {
			return "${" + name + "}", true
		}
		if size += len(value); grows {
			size += len(value) * len(before)
		}
		if size > maxText {
			if largest == "" {
				largest = name
			}
			return "", true // the text is too large already, so add no more to it
		}
		return value, true
	})
	switch {
	case largest != "":
		return "", beyond("with the variable %s it would have more than %d MiB", largest, maxText>>20)
	case err != nil:
		return "", err
	}
	if v.made += len(text); v.made > maxFilled {
		return "", beyond("all objects together have more than %d MiB with their variables", maxFilled>>20)
	}
	return text, nil
}

// bareVariable matches variables without a default.
var bareVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\$*)\$\{([_[:alpha:]][_[:alnum:]]*)\}`) })

// none tells whether nothing is filled in, although ConfigMaps are named: those are optional, and not in the repo or empty.
func (v *variables) none(post *kustomizev1.PostBuild) bool {
	return len(post.SubstituteFrom) > 0 && len(v.values) == 0 && !v.open && !v.always
}

// empties returns the variables of a text that nothing sets, and that become an empty text.
func (v *variables) empties(text []byte) []string {
	if v == nil || v.open || len(v.values) == 0 && !v.always {
		return nil
	}
	var names []string
	for _, m := range bareVariable().FindAllSubmatch(text, -1) {
		name := string(m[2])
		if _, ok := v.values[name]; !ok && len(m[1])%2 == 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// apply fills in the variables of an object. It returns an object without variables unchanged.
func (v *variables) apply(c *content) (*content, error) {
	if v == nil || len(v.values) == 0 && !v.always && !v.open || !bytes.Contains(c.json, []byte("$")) {
		return c, nil
	}
	var kept struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(c.json, &kept); err != nil {
		return nil, err
	}
	if kept.Metadata.Labels[substituteKey] == "disabled" || kept.Metadata.Annotations[substituteKey] == "disabled" {
		return c, nil
	}
	// Use the YAML of Flux's library: it writes a value that is just ${replicas} without quotes, so that the value becomes a number.
	before, err := sigsyaml.JSONToYAML(c.json)
	if err != nil {
		return nil, err
	}
	text, err := v.fill(string(before))
	if err != nil {
		return nil, err
	}
	if err := bombOf([]byte(text), maxNested); err != nil { // the values may contain anchors and aliases
		return nil, err
	}
	changed, err := toJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	if bytes.Equal(changed, c.json) {
		return c, nil
	}
	out, err := newContent(changed)
	if err != nil {
		return nil, err
	}
	out.source, out.template = c.source, c.template
	return out, nil
}
