package v1alpha1

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// ProviderTypes returns all valid types of providers.
func ProviderTypes() []ProviderType {
	return []ProviderType{
		ProviderCore, ProviderBootstrap, ProviderControlPlane, ProviderInfrastructure, ProviderIPAM, ProviderAddon,
		ProviderRuntimeExtension,
	}
}

func (v *validator) providers(at string, all []Provider) {
	known := make([]string, 0, len(ProviderTypes()))
	for _, t := range ProviderTypes() {
		known = append(known, string(t))
	}
	infrastructure := false
	for i, p := range all {
		here := itemPath(at, i)
		infrastructure = infrastructure || p.effectiveType() == ProviderInfrastructure
		v.label(here+".name", p.Name, maxLabel)
		v.oneOf(here+".type", "provider type", string(p.effectiveType()), known)
		v.version(here+".version", p.Version)
		v.releaseURL(here+".url", p.URL)
		v.variables(here+".variables", p.Variables)
		if p.effectiveType() == ProviderCore && p.Name != "" && p.Name != CoreProviderName {
			v.errorf(RuleValue, here+".name", "the core provider is called "+CoreProviderName, "unknown core provider %.60q", p.Name)
		}
		if p.effectiveType() == ProviderInfrastructure && (p.Name == CoreProviderName || p.Name == KubeadmProviderName) {
			v.errorf(RuleValue, here, "add `type: core`, `type: bootstrap` or `type: control-plane`", "%s is not an infrastructure provider", p.Name)
		}
	}
	v.oneInput(at, all)
	v.oneValue(at, all)
	unique(v, all, func(i int) string { return itemPath(at, i) }, "provider", func(p Provider) string {
		if p.Name == "" {
			return ""
		}
		return string(p.effectiveType()) + " " + p.Name
	})
	if !infrastructure {
		v.warnf(RuleValue, at, "add one, for example `- name: docker`", "there is no infrastructure provider, so no cluster can be made")
	}
}

// WithoutVersion returns an error for each provider that has no version, with its place in the file, in the order of the file. Call it
// after SetDefaults, which knows versions of the providers of Cluster API itself.
func (f *Fleet) WithoutVersion() diag.Findings {
	c := collector{source: f.source}
	for i := range f.Spec.ManagementClusters {
		m := &f.Spec.ManagementClusters[i]
		init := []string{"fleetctl", "init"}
		if len(f.Spec.ManagementClusters) > 1 {
			init = append(init, "--management", m.Name)
		}
		for j, p := range m.Providers {
			if p.Version == "" {
				c.errorf(RuleRequired, itemPath(itemPath("spec.managementClusters", i)+".providers", j),
					"`"+diag.ShellCommand(init...)+"` chooses one, or name it in "+FileName, "%s provider %s has no version", p.effectiveType(), p.Name)
			}
		}
	}
	return c.sorted()
}

// IsLocalURL tells whether an address is a path or a file:// URL, so that only one machine can read it.
func IsLocalURL(address string) bool {
	u, err := url.Parse(address)
	return path.IsAbs(address) || filepath.IsAbs(address) || err == nil && strings.EqualFold(u.Scheme, "file")
}

// releaseURL checks the address of manifests. It must be secure, because init applies the manifests as administrator.
func (v *validator) releaseURL(at, address string) {
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	switch {
	case IsLocalURL(address):
		v.warnf(RuleValue, at, "publish the components at an https URL", "only this machine has these components")
	case err != nil || u.Scheme == "" || u.Hostname() == "":
		v.errorf(RuleValue, at, "use https://host/path", "not a URL")
	case u.User != nil:
		v.errorf(RuleValue, at, "remove the part before the @", "URL has credentials, which do not belong in Git")
	case u.Scheme == "https" || u.Scheme == "http" && sameorigin.IsLoopback(u.Hostname()):
	default:
		v.errorf(RuleValue, at, "use https://", "scheme %q is not supported: manifests must come over https", u.Scheme)
	}
}

func (v *validator) variables(at string, all []Variable) {
	for i, variable := range all {
		v.variable(itemPath(at, i), variable)
	}
	unique(v, all, func(i int) string { return itemPath(at, i) + ".name" }, "variable", func(x Variable) string { return x.Name })
}

// vaultSecret checks the path and the field of a value in Vault.
func (v *validator) vaultSecret(at string, x *VaultSecret) {
	parts := strings.Split(x.Path, "/")
	if len(parts) < 2 || slices.ContainsFunc(parts, func(p string) bool { return p == "" || p == "." || p == ".." }) ||
		slices.Contains([]string{"sys", "auth", "v1"}, parts[0]) || strings.ContainsAny(x.Path, "?#%\\ \t\r\n") {
		v.errorf(RuleValue, at+".path", "write it as `vault read` takes it: aws/creds/ROLE, secret/NAME",
			"%.80q is not the path of a secret in Vault", x.Path)
	}
	if (x.Field == "") == (x.Text == "") {
		v.errorf(RuleValue, at, "set exactly one of them", "either field or text must choose the value in the secret")
	}
}

// vault checks the login to Vault.
func (v *validator) vault(at string, x Vault) {
	known := make([]string, 0, len(VaultMethods()))
	for _, m := range VaultMethods() {
		known = append(known, string(m))
	}
	if x.Method != "" {
		v.oneOf(at+".method", "way to log in to Vault", string(x.Method), known)
	}
	if x.JWTEnv != "" && !isVariableName(x.JWTEnv) {
		v.errorf(RuleValue, at+".jwtEnv", "letters, digits and underscores, no digit first",
			"%.80q is not the name of an environment variable", x.JWTEnv)
	}
	if x.JWTEnv != "" && x.JWTFile != "" {
		v.errorf(RuleValue, at, "keep one of them", "both jwtEnv and jwtFile say where the token is")
	}
	if x.TokenFile != "" && x.Method != "" && x.Method != VaultToken {
		v.errorf(RuleValue, at+".tokenFile", "remove it, or set `method: token`", "only the method token takes a token of Vault from a file")
	}
	if strings.ContainsAny(x.Mount, "?#%\\ \t\r\n") || slices.Contains(strings.Split(x.Mount, "/"), "..") {
		v.errorf(RuleValue, at+".mount", "write it as `vault auth list` does: approle, ci/jwt",
			"%.80q is not the mount of a way to log in to Vault", x.Mount)
	}
	if (x.Method == VaultKubernetes || x.Method == VaultJWT) && x.Role == "" {
		v.errorf(RuleValue, at, "add `role:`", "the login to Vault with method %s needs a role", x.Method)
	}
}

// oneInput allows only one variable to read the standard input.
func (v *validator) oneInput(at string, all []Provider) {
	found := ""
	for i, p := range all {
		for j, x := range p.Variables {
			if !x.Stdin {
				continue
			}
			if found != "" {
				v.errorf(RuleValue, itemPath(itemPath(at, i)+".variables", j)+".stdin", "give one of them another source",
					"%s reads standard input, too", found)
			}
			found = x.Name
		}
	}
}

// oneValue reports a variable that several providers declare with different sources. A variable has one value for all providers, so all but
// one of the sources would be passed over.
func (v *validator) oneValue(at string, all []Provider) {
	type declared struct {
		variable Variable
		provider int
	}
	first := map[string]declared{}
	for i, p := range all {
		for j, x := range p.Variables {
			if x.Env == x.Name { // which it is without it, too
				x.Env = ""
			}
			before, there := first[x.Name]
			if !there {
				first[x.Name] = declared{x, i}
				continue
			}
			if before.provider != i && x.Name != "" && !reflect.DeepEqual(before.variable, x) {
				v.errorf(RuleValue, itemPath(itemPath(at, i)+".variables", j),
					"declare it in the same way for both, or for one of them alone: a variable has one value for all providers",
					"provider %.60s declares the variable %.60q in another way", all[before.provider].Name, x.Name)
			}
		}
	}
}

func (v *validator) variable(at string, x Variable) {
	if x.Name != "" && !isVariableName(x.Name) {
		v.errorf(RuleValue, at+".name", "letters, digits and underscores, no digit first", "%.80q is not the name of a variable", x.Name)
	}
	if x.Env != "" && !isVariableName(x.Env) {
		v.errorf(RuleValue, at+".env", "letters, digits and underscores, no digit first",
			"%.80q is not the name of an environment variable", x.Env)
	}
	var sources []string
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"value", x.Value != nil},
		{"env", x.Env != ""},
		{"file", x.File != ""},
		{"stdin", x.Stdin},
		{"command", len(x.Command) > 0},
		{"vault", x.Vault != nil},
	} {
		if s.set {
			sources = append(sources, s.name)
		}
	}
	if len(sources) > 1 {
		v.errorf(RuleValue, at, "keep one of them", "variable has %s: %s", plain.Count(len(sources), "source"), strings.Join(sources, ", "))
	}
	if len(x.Command) > 0 && x.Command[0] == "" {
		v.errorf(RuleValue, at+".command", "the first item is the program to run", "command has no program")
	}
	if x.Vault != nil {
		v.vaultSecret(at+".vault", x.Vault)
	}
	if x.Value != nil && x.Base64 {
		v.errorf(RuleValue, at+".base64", "write the value in its final form", "base64 has no effect on a value in fleet.yaml")
	}
	if x.Value != nil && LooksSecret(x.Name, *x.Value) {
		v.warnf(RulePlainSecret, at+".value", "use env, file, command or vault, and change the secret if it was committed",
			"this looks like a secret, and fleet.yaml goes into Git")
	}
}

func isVariableName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if ok := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' && i > 0; !ok {
			return false
		}
	}
	return s != ""
}

// LooksSecret guesses whether a variable is a secret: from its name, or from a value in the form of a well-known credential. An empty value
// is not a secret, and neither is an empty one in base64: it says that a provider gets no credential.
func LooksSecret(name, value string) bool {
	if strings.TrimSpace(value) == "" {
		return false
	}
	if raw, err := base64.StdEncoding.DecodeString(value); err == nil && len(bytes.TrimSpace(raw)) == 0 {
		return false
	}
	for _, prefix := range []string{"-----BEGIN ", "AKIA", "ASIA", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "AGE-SECRET-KEY-", "eyJ"} {
		if strings.HasPrefix(value, prefix) {
			return true
		}
	}
	return NamesSecret(name)
}

// NamesSecret guesses from a variable's name whether its value is a secret.
func NamesSecret(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{
		"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "PRIVATE_KEY",
		"ACCESS_KEY", "API_KEY", "APIKEY",
	} {
		// a variable that ends so says where the secret is; it is not the secret
		if strings.Contains(name, word) && !endsWithAny(name, "_NAME", "_NAMESPACE", "_FILE", "_PATH", "_ID", "_URL", "_TTL", "_ENABLED") {
			return true
		}
	}
	return false
}

func endsWithAny(s string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
}
