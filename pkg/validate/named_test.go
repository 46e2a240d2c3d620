package validate

import "testing"

// Values of YAML, scripts and pipelines use a file that they name. Prose and comments do not.
func TestNamedByWhatUsesIt(t *testing.T) {
	const stray = "providers/docker/v1/stray.yaml"
	const run = "jobs:\n  a:\n    steps:\n    - run: |\n        "
	for name, tt := range map[string]struct {
		file, text string
		uses       bool
	}{
		"prose":                     {"README.md", "Look at " + stray + ".\n", false},
		"its owners":                {".github/CODEOWNERS", "/" + stray + " @acme/fleet\n", false},
		"a comment in YAML":         {"hack/values.yaml", "# see " + stray + "\na: b # " + stray + "\n", false},
		"a comment in a script":     {"hack/apply.sh", "# kubectl apply -f " + stray + "\ntrue # " + stray + "\n", false},
		"a longer name":             {"hack/apply.sh", "cat " + stray + ".bak my-" + stray + "\n", false},
		"what is encrypted":         {".sops.yaml", "creation_rules:\n- path_regex: " + stray + "\n", false},
		"a value in YAML":           {"hack/values.yaml", "valuesFiles: [./" + stray + "]\n", true},
		"a script":                  {"hack/apply.sh", "kubectl apply -f \"$TOP/" + stray + "\"\n", true},
		"a script without ending":   {"hack/apply", "#!/bin/sh\nkubectl apply -f ./" + stray + "\n", true},
		"make":                      {"Makefile", "apply:\n\tkubectl apply -f " + stray + "\n", true},
		"just":                      {"justfile", "apply:\n  kubectl apply -f " + stray + "\n", true},
		"task":                      {"Taskfile.yml", "tasks: {apply: {cmds: [kubectl apply -f " + stray + "]}}\n", true},
		"a pipeline":                {".github/workflows/a.yml", run + "kubectl apply -f " + stray + "\n", true},
		"a comment in a pipeline":   {".github/workflows/a.yml", run + "# " + stray + "\n        true\n", false},
		"a pipeline of another CI":  {"Jenkinsfile", "sh 'kubectl apply -f " + stray + "'\n", true},
		"tasks of mise":             {"mise.toml", "[tasks]\napply = \"kubectl apply -f " + stray + "\"\n", true},
		"a comment of mise":         {"mise.toml", "# kubectl apply -f " + stray + "\n", false},
		"a template of helmfile":    {"helmfile.yaml.gotmpl", "releases:\n- values: [\"" + stray + "\"]\n", true},
		"an environment":            {".envrc", "kubectl apply -f " + stray + "\n", true},
		"nix":                       {"hack/a.nix", "{ file = ./../" + stray + "; }\n", true},
		"gradle":                    {"hack/a.gradle.kts", "file(\"" + stray + "\")\n", true},
		"variables of terraform":    {"hack/a.tfvars", "file = \"../" + stray + "\"\n", true},
		"what Git ignores":          {".gitignore", "/" + stray + "\n", false},
		"attributes of files":       {".gitattributes", "/" + stray + " linguist-generated\n", false},
		"a licence":                 {"LICENSE", "It is of " + stray + "\n", false},
		"other prose":               {"docs/a.adoc", "Look at " + stray + "\n", false},
		"a comment of that, though": {"Jenkinsfile", "// sh 'kubectl apply -f " + stray + "'\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			files := fleet(t)
			files[stray], files[tt.file] = aConfigMap, tt.text
			var wanted []string
			if !tt.uses {
				wanted = append(wanted, RuleNotApplied+" "+stray)
			}
			expect(t, validate(t, files, knownKinds(t)).Findings, wanted...)
		})
	}
}
