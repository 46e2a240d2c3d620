package render_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// chartRepo is a fleet repo whose one release has these files in its chart, beside Chart.yaml.
func chartRepo(files map[string]string) (fstest.MapFS, *v1alpha1.Fleet, string) {
	const file = "providers/docker/v1/clusters/dev/shop/cluster.yaml"
	all := fstest.MapFS{
		"charts/bad/Chart.yaml": {Data: []byte("apiVersion: v2\nname: bad\nversion: 1.0.0\n")},
		file: {Data: []byte(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec:
  interval: 1m
  chart: {spec: {chart: ./charts/bad, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
`)},
	}
	for name, text := range files {
		all["charts/bad/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all, &v1alpha1.Fleet{}, file
}

// TestTemplatesKeepToBounds renders charts whose templates would take all memory, or never end, or end the process. Each gives an error,
// and soon, that names the template and the function that it calls.
func TestTemplatesKeepToBounds(t *testing.T) {
	const laughs = `{{define "l0"}}ha{{end}}`
	var include, action strings.Builder
	include.WriteString(laughs)
	action.WriteString(laughs)
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&include, `{{define "l%d"}}{{include "l%d" .}}{{include "l%d" .}}{{end}}`, i, i-1, i-1)
		fmt.Fprintf(&action, `{{define "l%d"}}{{template "l%d" .}}{{template "l%d" .}}{{end}}`, i, i-1, i-1)
	}
	for name, tt := range map[string]struct{ text, called string }{
		"repeat":              {`{{ repeat 1000000000 "x" }}`, "repeat"},
		"repeat that wraps":   {`{{ repeat 4611686018427387904 "xxxx" }}`, "repeat"},
		"until":               {`{{ until 1000000000 | len }}`, "until"},
		"until in until":      {`{{ range until 900000 }}{{ range until 900000 }}{{ end }}{{ end }}`, "range"},
		"untilStep":           {`{{ untilStep 0 2000000000 1 | len }}`, "untilStep"},
		"seq":                 {`{{ seq 1 1000000000 }}`, "seq"},
		"range over a number": {`{{ range 100000000000 }}{{ end }}`, "range"},
		"loop that prints":    {`{{ range 100000000000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}`, "range"},
		"indent":              {`{{ indent 1000000000 "x" }}`, "indent"},
		"nindent":             {`{{ nindent 1000000000 "x" }}`, "nindent"},
		"randAlphaNum":        {`{{ randAlphaNum 1000000000 }}`, "randAlphaNum"},
		"randBytes":           {`{{ randBytes 1000000000 }}`, "randBytes"},
		"replace":             {`{{ $x := repeat 1000000 "x" }}{{ replace "x" $x $x }}`, "replace"},
		"join":                {`{{ $x := repeat 1000000 "x" }}{{ join $x (until 100000) | len }}`, "join"},
		"regexReplaceAll":     {`{{ $x := repeat 1000000 "x" }}{{ regexReplaceAll "x" $x $x }}`, "regexReplaceAll"},
		"regex in a loop":     {`{{ $x := repeat 8000000 "x" }}{{ range 100000 }}{{ regexMatch "y" $x }}{{ end }}`, "regexMatch"},
		"wrapWith":            {`{{ $x := repeat 1000000 "x" }}{{ wrapWith 1 $x $x }}`, "wrapWith"},
		"printf":              {`{{ printf (repeat 1000 "%999999d") 1 }}`, "printf"},
		"printf with a star":  {`{{ printf (repeat 1000 "%[1]*[2]d") 999999 1 }}`, "printf"},
		"genPrivateKey":       {`{{ range 1000000 }}{{ genPrivateKey "ecdsa" }}{{ end }}`, "genPrivateKey"},
		"genCA":               {`{{ range 1000000 }}{{ $x := genCA "x" 1 }}{{ end }}`, "genCA"},
		"derivePassword":      {`{{ range 1000000 }}{{ $x := bcrypt "x" }}{{ end }}`, "bcrypt"},
		"include of itself":   {`{{define "x"}}{{include "x" .}}{{end}}{{include "x" .}}`, "include"},
		"template of itself":  {`{{define "x"}}{{template "x" .}}{{end}}{{template "x" .}}`, `"x"`},
		"both of itself":      {`{{define "x"}}{{template "y" .}}{{end}}{{define "y"}}{{include "x" .}}{{end}}{{template "x" .}}`, "include"},
		"tpl of itself":       {`{{ tpl .Chart.Description . }}`, "tpl"},
		"doubling includes":   {include.String() + `{{include "l39" .}}`, "include"},
		"doubling templates":  {action.String() + `{{template "l39" .}}`, `"l`},
		"text that doubles":   {`{{ $x := "x" }}{{ range 60 }}{{ $x = cat $x $x }}{{ end }}`, "cat"},
		"list that doubles":   {`{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}{{ len $x }}`, "concat"},
		"b64enc":              {`{{ $x := "x" }}{{ range 200 }}{{ $x = b64enc $x }}{{ end }}{{ len $x }}`, "b64enc"},
		"b32enc":              {`{{ $x := "x" }}{{ range 200 }}{{ $x = b32enc $x }}{{ end }}{{ len $x }}`, "b32enc"},
		"html":                {`{{ $x := "<" }}{{ range 200 }}{{ $x = html $x $x }}{{ end }}{{ len $x }}`, "html"},
		"js":                  {`{{ $x := "<" }}{{ range 200 }}{{ $x = js $x $x $x }}{{ end }}{{ len $x }}`, "js"},
		"urlquery":            {`{{ $x := "%" }}{{ range 200 }}{{ $x = urlquery $x $x }}{{ end }}{{ len $x }}`, "urlquery"},
		"js of a cycle":       {`{{ $x := dict }}{{ $y := dict "x" $x }}{{ $x = set $x "x" $y }}{{ js $y }}`, "set"},
		"Glob of braces":      {`{{ .Files.Glob (repeat 1000 "{a,b}") | len }}`, ".Files.Glob"},
		"Glob of wildcards":   {`{{ .Files.Glob (repeat 100 "**x") | len }}`, ".Files.Glob"},
		"fromYaml of aliases": {
			`{{ $x := printf "a: &a %s\nb: [%s]\n" (repeat 1000000 "x") (repeat 9999 "*a,") }}{{ fromYaml $x | len }}`, "fromYaml",
		},
		"fromYaml, kept": {`{{ $x := printf "a: [%s]" (repeat 1000000 "[],") }}{{ range 100 }}{{ $y := fromYaml $x }}{{ end }}`, "fromYaml"},
		"fromJson, kept": {
			`{{ $x := printf "[%s1]" (repeat 1000000 "[],") }}{{ range 100 }}{{ $y := fromJsonArray $x }}{{ end }}`, "fromJsonArray",
		},
		"has in a loop":       {`{{ $l := until 900000 }}{{ range $l }}{{ $x := has -1 $l }}{{ end }}`, "has"},
		"split of much":       {`{{ $x := repeat 8000000 "x" }}{{ split "" $x | len }}`, "split"},
		"regex of much":       {`{{ regexMatch (repeat 500 "x*.?y?") (repeat 8000000 "x") }}`, "regexMatch"},
		"regexQuoteMeta":      {`{{ $x := "." }}{{ range 60 }}{{ $x = regexQuoteMeta $x }}{{ end }}{{ len $x }}`, "regexQuoteMeta"},
		"uniq":                {`{{ uniq (until 900000) | len }}`, "uniq"},
		"random in a loop":    {`{{ range 12 }}{{ $x := randAlphaNum 4000000 }}{{ end }}`, "randAlphaNum"},
		"printf of many":      {`{{ printf "%100000v" (until 900000) | len }}`, "printf"},
		"printf, many times":  {`{{ printf (repeat 100000 "%[1]v") (until 1000) | len }}`, "printf"},
		"deep list":           {`{{ $x := list }}{{ range 1000000 }}{{ $x = list $x }}{{ end }}{{ $x }}`, "list"},
		"deep map":            {`{{ $x := dict }}{{ range 1000000 }}{{ $x = dict "a" $x }}{{ end }}{{ $x }}`, "dict"},
		"texts that are kept": {`{{ $x := list }}{{ range 10000 }}{{ $x = append $x (repeat 4000000 "x") }}{{ end }}`, "repeat"},
		"lists that are kept": {
			`{{ $x := dict }}{{ range $i := until 100000 }}{{ $x = set $x (toString $i) (until 1000000) }}{{ end }}`,
			"until",
		},
		"map in itself":    {`{{ $x := dict }}{{ $x = set $x "x" $x }}{{ $x }}`, "set"},
		"merge of itself":  {`{{ $x := dict "a" 1 }}{{ $x = merge $x (dict "x" $x) }}{{ $x }}`, "merge"},
		"map that doubles": {`{{ $x := dict "a" 1 }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}`, "toJson"},
		"deepCopy":         {`{{ $x := dict "a" 1 }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $y := deepCopy $x }}`, "deepCopy"},
	} {
		for _, way := range []string{"alone", "with a chart in it"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				files := map[string]string{"templates/evil.yaml": tt.text, strings.Repeat("x", 200): "x"}
				if name == "tpl of itself" {
					files["Chart.yaml"] = "apiVersion: v2\nname: bad\nversion: 1.0.0\ndescription: '{{ tpl .Chart.Description . }}'\n"
				}
				if way != "alone" {
					files["charts/inner/Chart.yaml"] = "apiVersion: v2\nname: inner\nversion: 1.0.0\n"
				}
				repo, fleet, file := chartRepo(files)
				findings := render.New(repo, fleet, render.Options{}).Declared(file, repo[file].Data)
				if len(findings) != 1 {
					t.Fatalf("findings: %v", findings)
				}
				text := findings[0].Summary
				if !strings.Contains(text, "evil.yaml") && !strings.Contains(text, `"x"`) || !strings.Contains(text, tt.called) ||
					!strings.Contains(text, "HelmRelease shop/shop") {
					t.Errorf("it says neither which template nor what it calls: %s", text)
				}
				if len(text) > 1500 {
					t.Errorf("it says too much: %d bytes", len(text))
				}
			})
		}
	}
}

// TestTemplatesRunOutOfTime renders charts whose templates call, again and again, what no other bound counts.
func TestTemplatesRunOutOfTime(t *testing.T) {
	for name, text := range map[string]string{
		"a loop":         `{{ $x := repeat 4000000 "x" }}{{ range 1000000 }}{{ $y := sha256sum $x }}{{ end }}`,
		"calls in it":    `{{ $x := repeat 4000000 "x" }}{{ range 1000000 }}{{ $y := sha256sum $x | quote }}{{ end }}`,
		"includes in it": `{{ define "hash" }}{{ sha256sum . }}{{ end }}{{ $x := repeat 4000000 "x" }}{{ range 1000000 }}{{ $y := include "hash" $x }}{{ end }}`,
	} {
		for _, way := range []string{"alone", "with a chart in it"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				files := map[string]string{"templates/evil.yaml": text}
				if way != "alone" {
					files["charts/inner/Chart.yaml"] = "apiVersion: v2\nname: inner\nversion: 1.0.0\n"
				}
				repo, fleet, file := chartRepo(files)
				findings := render.New(repo, fleet, render.Options{Time: 400 * time.Millisecond}).Declared(file, repo[file].Data)
				if len(findings) != 1 {
					t.Fatalf("findings: %v", findings)
				}
				// The clock runs out where it does: in the loop, or in what the loop calls.
				if said := findings[0].Summary; !strings.Contains(said, "range in template") && !strings.Contains(said, "at <") {
					t.Errorf("it names neither the loop nor the function: %s", said)
				}
				for _, want := range []string{"HelmRelease shop/shop", "bad/templates/evil.yaml", "out of time: the templates take longer than 300ms"} {
					if said := findings[0].Summary; !strings.Contains(said, want) {
						t.Errorf("it does not say %q: %s", want, said)
					}
				}
			})
		}
	}
}
