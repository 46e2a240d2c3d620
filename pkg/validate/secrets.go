package validate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// secretShape describes a secret that can be recognised by its text alone.
type secretShape struct {
	what string
	// Each such secret contains one of the texts in has. Looking for these takes a hundredth of the pattern's time.
	has     []string
	pattern *regexp.Regexp
	// proof, if set, decides whether a match is a secret.
	proof func(match []byte) bool
}

var secretShapes = []secretShape{
	{
		what: "a private key",
		has:  []string{"PRIVATE KEY"},
		pattern: regexp.MustCompile(
			`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|\\r)*(?:[A-Za-z-]+: [^\n]*\s+)*[A-Za-z0-9+/=]{16,}`,
		),
	},
	{
		what: "a private key", has: []string{"LS0tLS1CRUdJTi"},
		pattern: regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}`), proof: isEncodedKey,
	},
	{
		what: "a key of age", has: []string{"AGE-SECRET-KEY-1"},
		pattern: regexp.MustCompile(`AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}`),
	},
	{
		what: "a token of GitHub", has: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"},
		pattern: regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}\b`),
	},
	{what: "a token of GitHub", has: []string{"github_pat_"}, pattern: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b`)},
	{what: "a token of GitLab", has: []string{"glpat-"}, pattern: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{what: "a token of Slack", has: []string{"xox"}, pattern: regexp.MustCompile(`\bxox[abprs]-[0-9]{10,}-[A-Za-z0-9-]{10,}`)},
	{
		what: "a webhook of Slack", has: []string{"hooks.slack.com/services/"},
		pattern: regexp.MustCompile(`hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}`),
	},
	{
		what:    "a secret key of AWS",
		has:     awsKeyNames,
		pattern: regexp.MustCompile(`(?i)secret_?access_?key["']?\s*[:=]\s*["']?[A-Za-z0-9/+]{40}(?:[^A-Za-z0-9/+=]|$)`),
	},
	{what: "a key of Google", has: []string{"AIza"}, pattern: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{what: "a token of Vault", has: []string{"hvs."}, pattern: regexp.MustCompile(`\bhvs\.[A-Za-z0-9_-]{24,}`)},
	{what: "a token of Docker Hub", has: []string{"dckr_pat_"}, pattern: regexp.MustCompile(`\bdckr_pat_[A-Za-z0-9_-]{27}`)},
	{what: "a token", has: []string{"eyJ"}, pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`)},
}

// awsKeyNames are the ends of usual names of AWS's secret access key, in the usual upper and lower case.
var awsKeyNames = []string{"ccess_key", "ccess_Key", "ccesskey", "ccessKey", "CCESS_KEY", "CCESSKEY"}

// isEncodedKey tells whether a PEM block in base64 is a private key, and not a certificate.
func isEncodedKey(match []byte) bool {
	text, err := base64.StdEncoding.DecodeString(string(match[:len(match)&^3]))
	return err == nil && bytes.Contains(text, []byte("PRIVATE KEY"))
}

// checkSecrets looks for secrets in clear in all files.
func checkSecrets(t *tree) diag.Findings {
	found := make([]diag.Findings, len(t.files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range t.files {
		if f.excluded {
			continue
		}
		group.Go(func() error {
			found[i] = append(secretsIn(f), objectSecrets(t, f)...)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return slices.Concat(found...)
}

// secretsIn finds texts that look like secrets, in a file of any kind. The finding never shows the secret.
func secretsIn(f *file) diag.Findings {
	var out diag.Findings
	for _, shape := range secretShapes {
		if !slices.ContainsFunc(shape.has, func(text string) bool { return bytes.Contains(f.content, []byte(text)) }) {
			continue
		}
		for _, at := range shape.pattern.FindAllIndex(f.content, -1) {
			if shape.proof != nil && !shape.proof(f.content[at[0]:at[1]]) {
				continue
			}
			line := 1 + bytes.Count(f.content[:at[0]], []byte("\n"))
			column := at[0] - bytes.LastIndexByte(f.content[:at[0]], '\n')
			out = append(out, finding(RulePlainSecret, f.path, line, column, "this looks like "+shape.what+", in clear",
				"everybody who can read the repo has it: make a new one, and encrypt the new one with SOPS"))
		}
	}
	return out
}

// objectSecrets finds Secrets that are not encrypted, and kustomize's generators of them.
func objectSecrets(t *tree, f *file) diag.Findings {
	if path.Ext(f.path) == ".json" {
		return jsonSecrets(f)
	}
	var out diag.Findings
	for _, d := range f.documents {
		switch {
		case d.object == nil:
		case layout.IsKustomization(f.path):
			out = append(out, clearGenerators(t, d)...)
		default:
			out = append(out, clearSecrets(d)...)
		}
	}
	return out
}

// jsonSecrets finds a Secret in a JSON file, which kustomize accepts, too. The finding points at the beginning of the file.
func jsonSecrets(f *file) diag.Findings {
	if !bytes.Contains(f.content, []byte(`"Secret"`)) {
		return nil
	}
	var object map[string]any
	_ = json.Unmarshal(f.content, &object) // the object stays empty if the file is not JSON
	for _, s := range secretsAmong(object) {
		if field, name := clearValue(s.object); field != "" {
			return diag.Findings{clearFinding(f.path, 1, 1, field, name, s.object)}
		}
	}
	return nil
}

// aSecret is a Secret that is a document, or an item of a List.
type aSecret struct {
	object map[string]any
	at     []any
}

func secretsAmong(object map[string]any) []aSecret {
	kind, _ := object["kind"].(string)
	if kind == "Secret" && object["apiVersion"] == "v1" {
		return []aSecret{{object: object}}
	}
	items, _ := object["items"].([]any)
	if !strings.HasSuffix(kind, "List") {
		return nil
	}
	var out []aSecret
	for i, item := range items {
		inner, _ := item.(map[string]any)
		for _, s := range secretsAmong(inner) {
			out = append(out, aSecret{s.object, append([]any{"items", i}, s.at...)})
		}
	}
	return out
}

// clearSecrets returns a finding for each Secret that is not encrypted, at its first value in clear.
func clearSecrets(d *document) diag.Findings {
	var out diag.Findings
	for _, s := range secretsAmong(d.object) {
		if field, name := clearValue(s.object); field != "" {
			at := yamledit.Nearest(d.node, append(slices.Clip(s.at), field, name)...)
			out = append(out, clearFinding(d.file.path, at.Line, at.Column, field, name, s.object))
		}
	}
	return out
}

func clearFinding(file string, line, column int, field, name string, secret map[string]any) diag.Finding {
	return finding(RulePlainSecret, file, line, column,
		fmt.Sprintf("%s.%.60s: the Secret %.60v is not encrypted", field, name, nameOf(secret)), encryptHint)
}

const encryptHint = "`fleetctl secret encrypt` encrypts it with SOPS; a secret that was pushed has to be changed as well"

// clearValue finds the first value of a Secret that is in clear.
func clearValue(secret map[string]any) (field, name string) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := secret[field].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			text, ok := values[name].(string)
			if values[name] != nil && (!ok || text != "" && !strings.HasPrefix(text, "ENC[") && !isReferenceIn(field, text)) {
				return field, name
			}
		}
	}
	return "", ""
}

// encrypted is the beginning of a value that SOPS has encrypted, in a file of any kind.
const encrypted = "ENC[AES256_GCM,"

// clearGenerators finds Secrets that kustomize makes from values in clear, or from files that are not encrypted.
func clearGenerators(t *tree, d *document) diag.Findings {
	generators, _ := d.object["secretGenerator"].([]any)
	var out diag.Findings
	for i, g := range generators {
		generator, _ := g.(map[string]any)
		literals, _ := generator["literals"].([]any)
		if readable := slices.IndexFunc(literals, isClearLiteral); readable >= 0 {
			at := yamledit.Nearest(d.node, "secretGenerator", i, "literals", readable)
			out = append(out, finding(RulePlainSecret, d.file.path, at.Line, at.Column,
				fmt.Sprintf("secretGenerator[%d].literals: a Secret is made of values in clear", i), "keep the Secret in a file, encrypted with SOPS"))
		}
		for _, field := range []string{"files", "envs", "env"} {
			named, list := generator[field].([]any)
			if !list {
				named = []any{generator[field]}
			}
			for j, n := range named {
				name, _ := n.(string)
				if _, from, keyed := strings.Cut(name, "="); keyed && field == "files" {
					name = from
				}
				f := t.byPath[path.Join(path.Dir(d.file.path), name)]
				if name == "" || f == nil || len(f.content) == 0 || bytes.Contains(f.content, []byte(encrypted)) ||
					field != "files" && areReferences(f.content) {
					continue
				}
				at := yamledit.Nearest(d.node, "secretGenerator", i, field, j)
				out = append(out, finding(RulePlainSecret, d.file.path, at.Line, at.Column,
					fmt.Sprintf("secretGenerator[%d].%s: a Secret is made of %s, which is not encrypted", i, field, f.path), encryptHint))
			}
		}
	}
	return out
}

// isClearLiteral tells whether the value of NAME=VALUE is a secret in clear.
func isClearLiteral(literal any) bool {
	text, ok := literal.(string)
	_, value, _ := strings.Cut(text, "=")
	return !ok || value != "" && !isReference(strings.Trim(value, `"'`))
}

// checkAppliedSecrets checks the Secrets that Flux would apply, because a patch or a chart may make a Secret from other content. reported
// are the findings about files.
func (r *run) checkAppliedSecrets(all []*object, reported diag.Findings) diag.Findings {
	said := map[string]bool{}
	for _, f := range reported {
		if f.Rule == RulePlainSecret {
			said[f.File] = true
		}
	}
	var out diag.Findings
	for _, o := range all {
		if o.Kind != "Secret" || o.APIVersion != "v1" || o.content != nil || said[o.Source.File] {
			continue
		}
		var secret struct {
			Data       map[string]string `json:"data"`
			StringData map[string]string `json:"stringData"`
		}
		if json.Unmarshal(o.JSON, &secret) != nil {
			continue // its schema reports wrong types
		}
		values := maps.Clone(secret.StringData)
		if values == nil {
			values = map[string]string{}
		}
		for name, text := range secret.Data {
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				text = string(decoded)
			}
			values[name] = text
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			text := values[name]
			if text == "" || isReference(text) || strings.Contains(text, encrypted) || strings.HasPrefix(name, "sops_") {
				continue
			}
			if o.Template != "" && !r.standsInClear(o, text) {
				continue // the chart makes the value, for example at random
			}
			out = append(out, o.at("", RulePlainSecret, fmt.Sprintf("its value %.60s is not encrypted", name), encryptHint))
			break
		}
	}
	return out
}

// standsInClear tells whether a value of a chart's Secret is in the files from which it is made. It ignores values as short as a word,
// which may be there by chance.
func (r *run) standsInClear(o *object, text string) bool {
	const shortest = 6
	text = strings.TrimSpace(text)
	if len(text) < shortest {
		return false
	}
	chart, _, _ := strings.Cut(o.Template, "/templates/")
	for _, f := range append(slices.Clip(r.tree.below(chart)), r.tree.byPath[o.Source.File]) {
		if f != nil && bytes.Contains(f.content, []byte(text)) {
			return true
		}
	}
	return false
}

// isVariable tells whether a text is just a variable that Flux fills in.
func isVariable(text string) bool {
	return strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") && strings.Count(text, "${") == 1
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
