package validate

import (
	"bytes"
	"encoding/base64"
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
)

// secretShape is the look of a secret that nothing else has.
type secretShape struct {
	what string
	// begins is what every one of them has in it: a quick look before the pattern's.
	begins  string
	pattern *regexp.Regexp
	// proof, if set, looks closer at a match.
	proof func(match []byte) bool
}

var secretShapes = []secretShape{
	{what: "a private key", begins: "PRIVATE KEY", pattern: regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|\\r)*(?:[A-Za-z-]+: [^\n]*\s+)*[A-Za-z0-9+/=]{16,}`)},
	{what: "a private key", begins: "LS0tLS1CRUdJTi", pattern: regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}`), proof: isEncodedKey},
	{what: "a key of age", begins: "AGE-SECRET-KEY-1", pattern: regexp.MustCompile(`AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}`)},
	{what: "a token of GitHub", begins: "gh", pattern: regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}\b`)},
	{what: "a token of GitHub", begins: "github_pat_", pattern: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b`)},
	{what: "a token of GitLab", begins: "glpat-", pattern: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{what: "a token of Slack", begins: "xox", pattern: regexp.MustCompile(`\bxox[abprs]-[0-9]{10,}-[A-Za-z0-9-]{10,}`)},
	{what: "a webhook of Slack", begins: "hooks.slack.com/services/", pattern: regexp.MustCompile(`hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}`)},
	{what: "a secret key of AWS", begins: "ecret", pattern: regexp.MustCompile(`(?i)aws_?secret_?access_?key["']?\s*[:=]\s*["']?[A-Za-z0-9/+]{40}\b`)},
	{what: "a key of Google", begins: "AIza", pattern: regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{what: "a token of Vault", begins: "hvs.", pattern: regexp.MustCompile(`\bhvs\.[A-Za-z0-9_-]{24,}`)},
	{what: "a token of Docker Hub", begins: "dckr_pat_", pattern: regexp.MustCompile(`\bdckr_pat_[A-Za-z0-9_-]{27}`)},
	{what: "a token", begins: "eyJ", pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`)},
}

// isEncodedKey tells a private key from a certificate, in base64.
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
		group.Go(func() error {
			found[i] = append(secretsIn(f), objectSecrets(f)...)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return slices.Concat(found...)
}

// secretsIn finds what looks like a secret, whatever the file is. The finding never shows it.
func secretsIn(f *file) diag.Findings {
	var out diag.Findings
	for _, shape := range secretShapes {
		if !bytes.Contains(f.content, []byte(shape.begins)) {
			continue
		}
		for _, at := range shape.pattern.FindAllIndex(f.content, -1) {
			if shape.proof != nil && !shape.proof(f.content[at[0]:at[1]]) {
				continue
			}
			line := 1 + bytes.Count(f.content[:at[0]], []byte("\n"))
			column := at[0] - bytes.LastIndexByte(f.content[:at[0]], '\n')
			out = append(out, finding(RulePlainSecret, f.path, line, column, "this looks like "+shape.what+", in clear",
				"whoever reads the repo has it: make a new one, and encrypt that with SOPS"))
		}
	}
	return out
}

// objectSecrets finds Secrets that are not encrypted, and kustomize's generators of them.
func objectSecrets(f *file) diag.Findings {
	var out diag.Findings
	for _, d := range f.documents {
		if d.object == nil {
			continue
		}
		switch {
		case kindOf(d) == "Secret" && d.object["apiVersion"] == "v1":
			out = append(out, clearSecret(d)...)
		case path.Base(f.path) == "kustomization.yaml":
			out = append(out, clearGenerators(d)...)
		}
	}
	return out
}

// clearSecret is a finding at the first value of a Secret that anybody can read.
func clearSecret(d *document) diag.Findings {
	for _, field := range []string{"data", "stringData"} {
		values, _ := d.object[field].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			text, ok := values[name].(string)
			if ok && (text == "" || strings.HasPrefix(text, "ENC[") || isVariable(text)) {
				continue
			}
			at := yamledit.Nearest(d.node, field, name)
			return diag.Findings{finding(RulePlainSecret, d.file.path, at.Line, at.Column,
				fmt.Sprintf("%s.%.60s: the Secret %.60v is not encrypted", field, name, nameOf(d.object)),
				"`fleetctl secret encrypt` encrypts it with SOPS; a secret that was pushed has to be changed as well")}
		}
	}
	return nil
}

func clearGenerators(d *document) diag.Findings {
	generators, _ := d.object["secretGenerator"].([]any)
	var out diag.Findings
	for i, g := range generators {
		generator, _ := g.(map[string]any)
		if literals, _ := generator["literals"].([]any); len(literals) > 0 {
			at := yamledit.Nearest(d.node, "secretGenerator", i, "literals", 0)
			out = append(out, finding(RulePlainSecret, d.file.path, at.Line, at.Column,
				fmt.Sprintf("secretGenerator[%d].literals: a Secret is made of values in clear", i), "keep the Secret in a file, encrypted with SOPS"))
		}
	}
	return out
}

// isVariable tells whether a text is nothing but a variable that Flux fills in.
func isVariable(text string) bool {
	return strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") && strings.Count(text, "${") == 1
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
