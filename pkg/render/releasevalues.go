package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"helm.sh/helm/v4/pkg/strvals"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// defaults returns the values of the files that a HelmRelease names in place of the chart's own values.yaml. It returns nil if there are
// none.
func (r *Renderer) defaults(j *job) (map[string]any, error) {
	if j.chart != nil && len(j.chart.valuesFiles) > 0 {
		return valuesFiles(r.repo, j.chart.valuesFiles, j.chart.ignoreMissing)
	}
	return nil, nil
}

// values merges a release's values as helm-controller does: valuesFrom in order, then values, then the items of valuesFrom with a target
// path.
func (r *Renderer) values(j *job) (map[string]any, diag.Findings) {
	var result map[string]any
	spec := &j.spec.Spec
	var own map[string]any
	if spec.Values != nil {
		if err := json.Unmarshal(spec.Values.Raw, &own); err != nil {
			return nil, j.failed(RuleDecode, fmt.Errorf("spec.values: %w", err))
		}
	}
	var findings diag.Findings
	for _, from := range spec.ValuesFrom {
		if from.Kind == "Secret" {
			j.lacks = append(j.lacks, "the values of Secret "+from.Name)
			findings = append(findings, j.finding(diag.SeverityWarning, RuleValues,
				fmt.Sprintf("the values of Secret %s are never read: this is rendered without them", from.Name),
				"what has to be reviewed does not belong in a Secret")...)
			continue
		}
		text, ok := "", false
		if data, found := j.configMap(from.Name); found {
			text, ok = data.data[from.GetValuesKey()]
		}
		switch {
		case !ok && from.Optional:
			continue
		case !ok:
			j.lacks = append(j.lacks, "the values of ConfigMap "+from.Name)
			findings = append(findings, j.finding(diag.SeverityWarning, RuleValues,
				fmt.Sprintf("ConfigMap %s with the key %s is not in the repo: this is rendered without it", from.Name, from.GetValuesKey()), "")...)
			continue
		}
		var err error
		if result, err = addValues(result, own, from, text); err != nil {
			return nil, append(findings, j.failed(RuleValues, fmt.Errorf("ConfigMap %s, key %s: %w", from.Name, from.GetValuesKey(), err))...)
		}
	}
	return mergeValues(result, own), findings
}

// addValues merges the values of one reference over the values before it.
func addValues(result, own map[string]any, from meta.ValuesReference, text string) (map[string]any, error) {
	if from.TargetPath != "" {
		result = mergeValues(result, own)
		return result, setPath(result, from, text)
	}
	if err := Screen("values", []byte(text)).Err(); err != nil {
		return nil, err
	}
	var values map[string]any
	if err := sigsyaml.Unmarshal([]byte(text), &values); err != nil {
		return nil, err
	}
	return mergeValues(result, values), nil
}

// CheckTargetPath returns an error if the targetPath of an item of valuesFrom is none: helm-controller hands it to the parser of
// `helm --set`, which refuses some paths, and drops the value of others without a word. See ReplacePathValue in fluxcd/pkg/chartutil.
func CheckTargetPath(target string) error {
	values := map[string]any{}
	if err := strvals.ParseInto(target+"=a", values); err != nil {
		return err
	}
	if len(values) == 0 {
		return errors.New("a part of it has no name, so the value is dropped")
	}
	return nil
}

// setPath sets a value as `helm --set` does. For a quoted text it works as --set-string does, and for a literal text as --set-literal does.
func setPath(values map[string]any, from meta.ValuesReference, text string) error {
	if from.Literal {
		escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)
		return strvals.ParseIntoString(from.TargetPath+"="+escape.Replace(text), values)
	}
	for _, quote := range []string{"'", `"`} {
		if len(text) > 1 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return strvals.ParseIntoString(from.TargetPath+"="+strings.Trim(text, `'"`), values)
		}
	}
	return strvals.ParseInto(from.TargetPath+"="+text, values)
}
