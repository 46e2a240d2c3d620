package secret

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const (
	// RulesFile stands at the top of the fleet repo and says, to fleetctl as to sops, which files are encrypted for whom.
	RulesFile = ".sops.yaml"
	// Suffix ends the name of every file that is encrypted.
	Suffix = ".sops.yaml"
	// SecretFields are the fields of a Kubernetes Secret that nobody may read.
	SecretFields = "^(data|stringData)$" //nolint:gosec // names of fields, no credential
)

// Rule says how a file is encrypted.
type Rule struct {
	// Recipients are public age keys.
	Recipients []string
	// EncryptedRegex matches the names of the fields that are encrypted, with all below them; empty: every field is.
	EncryptedRegex string
}

// Rules are the content of RulesFile, as far as it is in use here.
type Rules struct {
	rules []creationRule
}

type creationRule struct {
	PathRegex      string `yaml:"path_regex"`
	EncryptedRegex string `yaml:"encrypted_regex"`
	Age            string `yaml:"age"`
}

// NewRules is the content of a new RulesFile: Secrets, in files with the Suffix, are encrypted for recipients.
func NewRules(recipients []string) []byte {
	return fmt.Appendf(nil,
		`# Files called *%s are encrypted, field by field; the sops program reads this file too. The private key is not in Git.
creation_rules:
- path_regex: \.sops\.ya?ml$
  encrypted_regex: %s
  age: %s
`, Suffix, SecretFields, strings.Join(recipients, ","))
}

// ParseRules reads a RulesFile.
func ParseRules(content []byte) (*Rules, error) {
	documents, err := yamledit.Parse(content)
	if err != nil || len(documents) != 1 {
		return nil, diag.Errorf("see the documentation of SOPS", "%s is not YAML", RulesFile)
	}
	var decoded struct {
		Rules []creationRule `yaml:"creation_rules"`
	}
	if err := documents[0].Decode(&decoded); err != nil {
		return nil, diag.Wrap("read "+RulesFile, err, "the key age is text: public keys with commas between them")
	}
	for _, c := range decoded.Rules {
		if isPrivate(c.Age) { // many an error names the recipients
			return nil, diag.Wrap("read "+RulesFile, errPrivate, diag.Hint(errPrivate))
		}
	}
	return &Rules{rules: decoded.Rules}, nil
}

// For is the first rule that matches a path of the repo.
func (r *Rules) For(path string) (Rule, error) {
	for _, c := range r.rules {
		matches, err := regexp.MatchString(c.PathRegex, path)
		if err != nil {
			return Rule{}, diag.Wrap("read "+RulesFile, err, "correct path_regex")
		}
		if matches {
			return Rule{Recipients: splitKeys(c.Age), EncryptedRegex: c.EncryptedRegex}, nil
		}
	}
	return Rule{}, diag.Errorf(fmt.Sprintf("call it *%s, or add a rule", Suffix), "no rule of %s is for %s", RulesFile, path)
}

// Recipients are the public keys of all rules.
func (r *Rules) Recipients() []string {
	var all []string
	for _, c := range r.rules {
		all = append(all, splitKeys(c.Age)...)
	}
	return all
}

// Replace sets recipients in every rule that names one of old. It keeps the rest of the file as it is.
func Replace(content []byte, old, recipients []string) ([]byte, error) {
	rules, err := ParseRules(content)
	if err != nil {
		return nil, err
	}
	for i, c := range rules.rules {
		var kept []string
		for _, r := range splitKeys(c.Age) {
			if !slices.Contains(old, r) && !slices.Contains(recipients, r) {
				kept = append(kept, r)
			}
		}
		if len(kept) == len(splitKeys(c.Age)) && len(old) > 0 {
			continue
		}
		value := strings.Join(append(kept, recipients...), ",")
		if content, err = yamledit.Set(content, 0, yamledit.Path{"creation_rules", i, "age"}, value); err != nil {
			return nil, fmt.Errorf("change %s: %w", yamledit.At(RulesFile, err), err)
		}
	}
	return content, nil
}

func splitKeys(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}
