//go:build amd64 || arm64

package review_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/syswatch"
	"github.com/fleetctl/fleetctl/pkg/validate"
)

func TestMain(m *testing.M) { syswatch.Main(m, look) }

// planted is a folder that has this file: what is looked at then is not the repo alone, so that a test sees that it would be found.
const planted = "planted"

// look does with a fleet repo what a pull request of a stranger has done with it.
func look(dir string) error {
	if content, err := os.ReadFile(filepath.Join(dir, planted)); err == nil {
		return plant(dir, string(content))
	}
	ctx := context.Background()
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		_, worked := review.Diff(ctx, review.DiffOptions{Dir: dir})
		_, committed := review.Diff(ctx, review.DiffOptions{Dir: dir, From: "HEAD~1", To: "HEAD"})
		return errors.Join(worked, committed)
	}
	_, rendered := review.Render(ctx, review.RenderOptions{Dir: dir})
	_, validated := validate.Run(ctx, validate.Options{Dir: dir, Offline: true})
	return errors.Join(rendered, validated)
}

// plant renders a repo after it has done what rendering must never do.
func plant(dir, what string) error {
	var err error
	switch what {
	case "read":
		_, err = os.ReadFile(filepath.Join(dir, "..", "..", "outside"))
	case "kustomize": // without what makes it safe
		_, err = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "base"))
	case "write":
		err = os.WriteFile(filepath.Join(os.TempDir(), "outside"), nil, 0o600)
	case "run":
		var process *os.Process
		if process, err = os.StartProcess("/bin/sh", []string{"sh", "-c", "exit"}, &os.ProcAttr{}); err == nil {
			_, err = process.Wait()
		}
	}
	_, rendered := review.Render(context.Background(), review.RenderOptions{Dir: dir})
	return errors.Join(err, rendered)
}

const hostileFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec:
  git: {url: https://git.example.com/fleet.git}
  environments: [{name: dev}]
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.36.3
    providers: [{name: docker}]
`

const hostileApply = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec: {interval: 10m, path: %s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}%s}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec: {interval: 10m, chart: {spec: {chart: %s, valuesFiles: [%s], sourceRef: {kind: GitRepository, name: flux-system}}}, values: {a: %s}}
`

// hostilePlaces are where a path can stand, by the file that it stands in; %s is the path, as YAML or as what a template has in quotes.
var hostilePlaces = []struct{ file, text string }{
	{"base/kustomization.yaml", "resources: [%s]\n"},
	{"base/kustomization.yaml", "bases: [%s]\n"},
	{"base/kustomization.yaml", "components: [%s]\n"},
	{"base/kustomization.yaml", "crds: [%s]\n"},
	{"base/kustomization.yaml", "configurations: [%s]\n"},
	{"base/kustomization.yaml", "openapi: {path: %s}\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\npatches: [{path: %s}]\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\npatchesStrategicMerge: [%s]\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\npatchesJson6902: [{path: %s, target: {kind: ConfigMap, name: a, version: v1}}]\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\nreplacements: [{path: %s}]\n"},
	{"base/kustomization.yaml", "configMapGenerator: [{name: b, files: [%s]}]\n"},
	{"base/kustomization.yaml", "configMapGenerator: [{name: b, envs: [%s]}]\n"},
	{"base/kustomization.yaml", "secretGenerator: [{name: b, env: %s}]\n"},
	{"base/kustomization.yaml", "generators: [%s]\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\ntransformers: [%s]\n"},
	{"base/kustomization.yaml", "resources: [a.yaml]\nvalidators: [%s]\n"},
	{"base/kustomization.yaml", "helmCharts: [{name: a, repo: %s}]\n"},
	{"base/kustomization.yaml", "helmGlobals: {chartHome: %s}\nhelmCharts: [{name: a}]\n"},
	{
		"base/kustomization.yaml",
		"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: b}, files: [\"x=http://127.0.0.1:9/\"]}', %s]\n",
	},
	{"base/kustomization.yaml", "<<: {resources: [%s]}\n"},
	{"base/kustomization.yaml", "configMapGenerator: [{name: b, <<: {files: [%s]}}]\n"},
	{"base/Kustomization", "resources: [%s]\n"},
	{"base/g.yaml", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: b}\nfiles: [%s]\n"},
	{"base/g.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\npath: %s\ntarget: {kind: ConfigMap}\n"},
	{"base/g.yaml", "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: b}\nreplacements: [{path: %s}]\n"},
	{"base/g.yaml", "apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: b}\npaths: [%s]\n"},
	{"base/g.yaml", "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: b}\nname: a\nrepo: %s\n"},
	{"base/g.yaml", "apiVersion: example.com/v1\nkind: X\nmetadata:\n  name: b\n  annotations: {config.kubernetes.io/function: 'exec: " +
		"{path: %s}'}\n"},
	{"components", "%s"},
	{"chart", "%s"},
	{"values", "%s"},
	{"charts/web/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: {{ .Files.Get %s | quote }}}\n"},
	{
		"charts/web/templates/a.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: {{ getHostByName %s | quote }}, b: {{ tpl %[1]s . | quote }}}\n",
	},
	{"charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: x, version: 1.0.0, repository: %s}]\n"},
	{"charts/web/values.schema.json", `{"$ref": %s}`},
	{"charts/web/requirements.yaml", "dependencies: [{name: x, version: 1.0.0, repository: %s}]\n"},
	{"charts/web/Chart.lock", "dependencies: [{name: x, version: 1.0.0, repository: %s}]\ndigest: x\n"},
	{"charts/web/charts/x/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\nicon: %s\n"},
	{
		"charts/web/crds/c.yaml",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec: {conversion: {strategy: " +
			"Webhook, webhook: {clientConfig: {url: %s}}}}\n",
	},
	{
		"charts/web/templates/a.yaml",
		"{{ (lookup \"v1\" \"Secret\" %s \"\") | quote }}{{ range $k, $v := .Files.Glob %[1]s }}{{ $v | toString | quote }}{{ end }}{{ " +
			"template %[1]s . }}\n",
	},
	{"charts/web/.helmignore", "%s\n"},
	{"base/crd.yaml", hostileCRD},
	{"base/kustomization.yaml", "resources: [!include %s]\n"},
	{"base/kustomization.yaml", "resources: [!!binary %s, !<tag:yaml.org,2002:str> %[1]s]\n"},
	{"base/kustomization.yaml", "configMapGenerator: [{name: b, files: !!set {%s}}]\n"},
	{
		"base/kustomization.yaml",
		"resources: [a.yaml]\nsortOptions: {order: fifo}\nbuildMetadata: [%s]\nreplacements: [{source: {kind: ConfigMap}, targets: [{select: " +
			"{name: %[1]s}}]}]\n",
	},
	{"base/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {config.kubernetes.io/function: \"exec: {path: " +
		"x}\"}}\ndata: !file {a: !include %s}\n"},
	{"base/a.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: b}, files: " +
		"[%s]}]\n"},
	{"base/.sourceignore", "%s\n!%[1]s\n"},
	{"path", "%s"},
	{"valuesFiles", "%s"},
	{"providers/docker/v1/mgmt/source.yaml", hostileSources},
	{
		"providers/docker/v1/clusters/dev/x/cluster.yaml",
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x, namespace: x}\nspec: {interval: 10m, chart: {spec: " +
			"{chart: %s, sourceRef: {kind: GitRepository, name: flux-system}}}, kubeConfig: {secretRef: {name: %[1]s}}, valuesFrom: [{kind: " +
			"Secret, name: %[1]s}]}\n",
	},
	{"fleet.yaml", strings.ReplaceAll(hostileFleet, "https://git.example.com/fleet.git}", "https://git.example.com/fleet.git, caFile: %s}")},
	{"fleet.yaml", strings.ReplaceAll(hostileFleet, "https://git.example.com/fleet.git", "%s")},
	{"fleet.yaml", strings.ReplaceAll(hostileFleet, "{name: docker}",
		"{name: docker, version: v1.0.0, url: %s, variables: {A: {file: %[1]s}, B: {command: [%[1]s]}}}")},
	{"fleet.lock", "apiVersion: fleetctl.dev/v1alpha1\nkind: Lock\ncomponents: [{name: docker, type: infrastructure, version: v1.0.0, url: " +
		"%s, sha256: x}]\n"},
	{".sops.yaml", "creation_rules: [{path_regex: %s, age: %[1]s}]\n"},
	{".gitmodules", "[submodule \"x\"]\n\tpath = base\n\turl = %s\n"},
}

const hostileCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec:
  group: example.com
  names: {kind: A, plural: as}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, externalDocs: {url: %[1]s}, properties: {a: {$ref: %[1]s}}}}}]
`

const hostileSources = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: a, namespace: flux-system}
spec: {interval: 10m, url: %[1]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: a, namespace: flux-system}
spec: {interval: 10m, url: %[1]s, verify: {provider: cosign, secretRef: {name: a}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: a, namespace: flux-system}
spec: {interval: 10m, endpoint: %[1]s, bucketName: a}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: of-others, namespace: flux-system}
spec: {interval: 10m, chart: {spec: {chart: %[1]s, sourceRef: {kind: HelmRepository, name: a}}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: of-others, namespace: flux-system}
spec: {interval: 10m, path: ./, prune: true, sourceRef: {kind: OCIRepository, name: a}}
`

// hostileRepo is a fleet repo with a path in one of the places.
func hostileRepo(place, change int, value string) map[string]string {
	p := hostilePlaces[place]
	quoted := fmt.Sprintf("%q", value)
	files := map[string]string{
		"fleet.yaml": hostileFleet, "base/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"base/kustomization.yaml": "resources: [a.yaml]\n",
		"charts/web/Chart.yaml":   "apiVersion: v2\nname: web\nversion: 1.0.0\n", "charts/web/templates/a.yaml": "",
		"charts/web/values.yaml": "a: b\n",
	}
	folder, components, chart, valuesFile, values := "./base", "", "./charts/web", "charts/web/values.yaml", "b"
	switch p.file {
	case "components":
		components = ", components: [" + quoted + "]"
	case "path":
		folder = quoted
	case "chart":
		chart = quoted
	case "valuesFiles":
		valuesFile = quoted
	case "values":
		values = quoted
	case "base/crd.yaml":
		files["base/kustomization.yaml"] = "resources: [a.yaml, crd.yaml]\ncrds: [crd.yaml]\n"
	case "base/Kustomization":
		delete(files, "base/kustomization.yaml")
	case "base/g.yaml":
		files["base/kustomization.yaml"] = []string{
			"generators: [g.yaml]\n", "resources: [a.yaml]\ntransformers: [g.yaml]\n",
			"resources: [a.yaml]\nvalidators: [../base/g.yaml]\n",
		}[change%3]
	}
	files["providers/docker/v1/mgmt/apply.yaml"] = fmt.Sprintf(hostileApply, folder, components, chart, valuesFile, values)
	if p.text != "%s" {
		files[p.file] = fmt.Sprintf(p.text, quoted)
		if strings.HasSuffix(strings.ToLower(p.file), "kustomization.yaml") || strings.HasSuffix(p.file, "g.yaml") {
			files[p.file] = changed(files[p.file], change/3)
		}
	}
	return files
}

// changed is a text whose first field, or another one, is written in another case.
func changed(text string, change int) string {
	fields := strings.Count(text, ": ")
	if change == 0 || fields == 0 {
		return text
	}
	at := 0
	for range change % fields {
		at += strings.Index(text[at:], ": ") + 2
	}
	end := at + strings.Index(text[at:], ": ")
	return text[:at] + strings.ToUpper(text[at:end]) + text[end:]
}

func writeHostile(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "base", "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostileValues are paths that lead out of a repo, or have what reads them do more than read.
var hostileValues = []string{
	"https://127.0.0.1:9/x?ref=--upload-pack=date&timeout=1", "HTTP://127.0.0.1:9/x", "x@127.0.0.1:a/b", "x=http://127.0.0.1:9/",
	"../../../../../../etc/passwd", "link", "g",
}

// Whatever path stands in a fleet repo, wherever it stands: no program is started, no socket opened, and no file outside of the repo read
// or written.
func TestHostileRepo(t *testing.T) {
	child := syswatch.Start(t)
	try := func(place, change int, value string) {
		if did, said := child.Run(t, writeHostile(t, hostileRepo(place, change, value))); len(did) > 0 {
			t.Errorf("%q in place %d had it %s (%s)", value, place, strings.Join(did, "; "), said)
		}
	}
	for place := range hostilePlaces {
		for i, value := range hostileValues {
			try(place, i, value)
		}
		try(place, 3, hostileValues[0])
	}
}

// FuzzHostileRepo goes on from there with other paths. Each seed costs a process that is watched, for every run before the first new one:
// there is one for each path, and the places are numbers that a fuzzer finds by itself.
func FuzzHostileRepo(f *testing.F) {
	child := syswatch.Start(f)
	for i, value := range hostileValues {
		f.Add(uint8(i), uint8(i), value)
	}
	f.Fuzz(func(t *testing.T, place, change uint8, value string) {
		files := hostileRepo(int(place)%len(hostilePlaces), int(change), value)
		if did, said := child.Run(t, writeHostile(t, files)); len(did) > 0 {
			t.Errorf("the repo had it %s (%s)", strings.Join(did, "; "), said)
		}
	})
}

// Had rendering a hole, the tests above would say so.
func TestHostileOracle(t *testing.T) {
	child := syswatch.Start(t)
	for fault, says := range map[string]string{"run": "started", "read": "read", "write": "wrote", "kustomize": "opened a socket"} {
		files := hostileRepo(0, 0, "http://127.0.0.1:9/x")
		files[planted] = fault
		if did, _ := child.Run(t, writeHostile(t, files)); len(did) == 0 || !strings.HasPrefix(did[0], says) {
			t.Errorf("%s: reported %q", fault, did)
		}
	}
}

// TestHostileDiff compares revisions of a hostile repo: its history, its files on disk, and its settings for Git. No file outside of the
// repo is read, not even the user's own configuration of Git, which may name programs to run.
func TestHostileDiff(t *testing.T) {
	child := syswatch.Start(t)
	configuration := `[core]
	fsmonitor = touch /tmp/ran
	sshCommand = touch /tmp/ran
	hooksPath = /etc
	attributesFile = /etc/passwd
	excludesFile = /etc/passwd
	worktree = .
[diff]
	external = touch /tmp/ran
[filter "x"]
	clean = touch /tmp/ran
	smudge = touch /tmp/ran
[remote "origin"]
	url = ext::touch /tmp/ran
	promisor = true
`
	for place := range hostilePlaces {
		dir := writeHostile(t, hostileRepo(place, place, "https://127.0.0.1:9/x?ref=--upload-pack=date&timeout=1"))
		commit := func(message string) {
			gittest.Git(t, dir, "add", "--all")
			gittest.Git(t, dir, "commit", "--quiet", "--message", message)
		}
		gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
		commit("hostile")
		clean := hostileRepo(place, place, "a.yaml")
		for name, content := range clean {
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=x diff=x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		commit("clean")
		if err := os.WriteFile(filepath.Join(dir, "base", "b.yaml"),
			[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "config"),
			[]byte("[core]\n\trepositoryformatversion = 0\n"+configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		did, said := child.Run(t, dir)
		if place == 0 && said != `"ok"` {
			t.Errorf("nothing was compared: %s", said)
		}
		if len(did) > 0 {
			t.Errorf("place %d: the repo had it %s (%s)", place, strings.Join(did, "; "), said)
		}
	}
}
