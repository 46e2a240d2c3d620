package validate

import (
	"maps"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

const jinja = "{% if a %}\nname: {{ b }}\n{% endif %}\n"

// A file that Flux does not read may be a template of another program. It is no error, and nothing else goes unsaid because of it.
func TestFilesThatFluxDoesNotRead(t *testing.T) {
	base := rawRepo()
	base["infra/kustomization.yaml"] = "resources: [classy.yaml]\nconfigMapGenerator:\n" +
		"- name: dashboards\n  namespace: classy\n  files: [config.yaml]\n"
	base["infra/config.yaml"] = "a: b\n"
	for _, c := range clouds {
		delete(base, c.file())
	}
	base["infra/.sourceignore"] = "left-out.yaml\n"
	flat := func(files map[string]string) {
		delete(files, "infra/kustomization.yaml")
		delete(files, "infra/config.yaml")
	}
	chart := func(files map[string]string) {
		files["charts/own/Chart.yaml"] = "apiVersion: v2\nname: own\nversion: 1.0.0\n"
		files["charts/own/values.yaml"] = jinja
		files["infra/kustomization.yaml"] = "resources: [classy.yaml, release.yaml]\n"
		files["infra/release.yaml"] = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n" +
			"metadata: {name: own, namespace: classy}\nspec:\n  interval: 1m\n  chart: {spec: {chart: ./charts/own, sourceRef: " +
			"{kind: GitRepository, name: flux-system, namespace: flux-system}}}\n"
	}
	for name, c := range map[string]struct {
		file, content, rule string
		change              func(files map[string]string)
		severity            diag.Severity
	}{
		"Ansible":              {file: "ansible/roles/x/templates/foo.yaml", content: jinja},
		"cookiecutter":         {file: "{{cookiecutter.name}}/values.yaml", content: "a: {{ cookiecutter.b }}-c\n"},
		"Terraform":            {file: "terraform/values.yaml", content: "%{ for a in b }\n- ${a}\n%{ endfor }\n"},
		"no UTF-8":             {file: "windows/latin.yaml", content: "a: \xe4\n"},
		"a bomb":               {file: "fuzz/bomb.yaml", content: bomb(), rule: RuleLimit},
		"a field twice":        {file: "hack/twice.yaml", content: "a: b\na: c\n", rule: RuleDuplicateField},
		"beside, not named":    {file: "infra/forgotten.yaml", content: jinja},
		"left out":             {file: "infra/left-out.yaml", content: jinja, change: flat},
		"input of generator":   {file: "infra/config.yaml", content: jinja},
		"of GitHub":            {file: ".github/workflows/a.yaml", content: "a: [b\n"},
		"named":                {file: "infra/classy.yaml", content: jinja, severity: diag.SeverityError},
		"a kustomization":      {file: "infra/kustomization.yaml", content: jinja, severity: diag.SeverityError},
		"in an applied path":   {file: "infra/new.yaml", content: jinja, change: flat, severity: diag.SeverityError},
		"values of a chart":    {file: "charts/own/values.yaml", content: jinja, change: chart, severity: diag.SeverityError},
		"fleet.lock":           {file: "fleet.lock", content: "a: [b\n", severity: diag.SeverityError},
		"a Flux Kustomization": {file: "clusters/mgmt/infra.yaml", content: jinja, severity: diag.SeverityError},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(base)
			if c.change != nil {
				c.change(files)
			}
			files[c.file] = c.content
			rule, severity := c.rule, c.severity
			if rule == "" {
				rule = RuleSyntax
			}
			if severity == "" {
				severity = diag.SeverityWarning
			}
			result := validate(t, files, knownKinds(t))
			found := ofRule(result.Findings, rule)
			if len(found) == 0 || found[0].File != c.file || found[0].Severity != severity {
				t.Errorf("got %v, want one of severity %s about %s", found, severity, c.file)
			}
			if severity == diag.SeverityWarning {
				if err := result.Findings.Err(); err != nil {
					t.Errorf("it is an error: %v", err)
				}
				for _, f := range ofRule(result.Findings, RuleNotApplied) {
					if f.File == c.file {
						t.Errorf("it is reported twice: %s", f)
					}
				}
			}
		})
	}

	// What is wrong beside it is still said, and a comment silences the warning.
	files := map[string]string{"infra/forgotten.yaml": "# fleetctl:ignore syntax a template of Ansible\n" + jinja}
	maps.Copy(files, base)
	files["infra/kustomization.yaml"] = "resources: [classy.yaml]\npatches:\n- target: {kind: Nothing}\n  patch: |\n" +
		"    - {op: add, path: /a, value: b}\n"
	result := validate(t, files, knownKinds(t))
	if found := ofRule(result.Findings, RulePatch); len(found) != 1 {
		t.Errorf("a patch of the folder without a target: %v", found)
	}
	if found := ofRule(result.Findings, RuleSyntax); len(found) > 0 {
		t.Errorf("silenced: %v", found)
	}
}

// In fleetctl's layout a broken file stays an error, unless Flux never sees it.
func TestBrokenFilesOfFleets(t *testing.T) {
	files := fleet(t)
	files["tools/a.yaml"], files["seen.yaml"], files[".sourceignore"] = jinja, jinja, "/tools/\n"
	severities := map[string]diag.Severity{}
	for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleSyntax) {
		severities[f.File] = f.Severity
	}
	if severities["tools/a.yaml"] != diag.SeverityWarning || severities["seen.yaml"] != diag.SeverityError {
		t.Errorf("got %v", severities)
	}
}
