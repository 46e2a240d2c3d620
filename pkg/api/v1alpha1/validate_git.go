package v1alpha1

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func (v *validator) git(at string, g Git) {
	scheme := g.Scheme()
	if g.URL != "" {
		if _, err := g.ParseURL(); err != nil {
			v.errorf(RuleValue, at+".url", diag.Hint(err), "%v", err)
			scheme = "" // unknown: report no fields that do not fit the scheme
		}
	}
	if g.Branch != "" && !IsBranch(g.Branch) {
		v.errorf(RuleValue, at+".branch", "", "%.80q is not a valid name of a branch", g.Branch)
	}
	v.interval(at+".interval", g.Interval)
	if g.Forge != "" {
		known := make([]string, 0, len(ForgeTypes()))
		for _, t := range ForgeTypes() {
			known = append(known, string(t))
		}
		v.oneOf(at+".forge", "forge", string(g.Forge), known)
	}
	v.knownHosts(at+".knownHosts", g.KnownHosts)
	if g.SharePushToken && scheme != "" && scheme != GitHTTPS {
		v.warnf(RuleUnused, at+".sharePushToken", "remove it",
			"only an %s URL has a token, but the URL of this repository uses %s", GitHTTPS, scheme)
	}
	for _, only := range []struct {
		field, value string
		scheme       GitScheme
	}{
		{"caFile", g.CAFile, GitHTTPS},
		{"fluxUsername", g.FluxUsername, GitHTTPS},
		{"knownHosts", g.KnownHosts, GitSSH},
	} {
		if only.value != "" && scheme != "" && scheme != only.scheme {
			v.warnf(RuleUnused, at+"."+only.field, "remove it",
				"only an %s URL uses it, but the URL of this repository uses %s", only.scheme, scheme)
		}
	}
}

// knownHosts checks the form of each line. The ssh library checks the keys.
func (v *validator) knownHosts(at, lines string) {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '@' { // a marker: @cert-authority
			words = words[1:]
		}
		if len(words) < 3 {
			v.errorf(RuleValue, at,
				"each line is host, type of key, key; `ssh-keyscan host` prints such lines: compare them with the host keys that your server publishes",
				"%.60q is not a line of known_hosts", line)
		}
	}
}

// IsBranch tells whether name is a valid name of a branch or tag, by the rules of git check-ref-format.
func IsBranch(name string) bool {
	if name == "@" || name == "HEAD" || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\\x7f") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

// requiredFluxComponents are the components that Flux needs to apply anything.
var requiredFluxComponents = [...]string{"source-controller", "kustomize-controller"}

// FluxComponents returns all valid values of spec.flux.components.
func FluxComponents() []string {
	return append(DefaultFluxComponents(), "image-reflector-controller", "image-automation-controller", "source-watcher")
}

func (v *validator) flux(f Flux) {
	v.version("spec.flux.version", f.Version)
	at := func(i int) string { return itemPath("spec.flux.components", i) }
	for i, name := range f.Components {
		v.oneOf(at(i), "Flux component", name, FluxComponents())
	}
	unique(v, f.Components, at, "component", func(s string) string { return s })
	if len(f.Components) > 0 {
		for _, name := range requiredFluxComponents {
			if !slices.Contains(f.Components, name) {
				v.errorf(RuleValue, "spec.flux.components", "add `- "+name+"`", "%s is missing: Flux cannot work without it", name)
			}
		}
	}
	v.releaseURL("spec.flux.url", f.URL)
	v.registry("spec.flux.registry", f.Registry)
}

// registry checks the form of a container registry's name, with or without a path. It accepts an empty name.
func (v *validator) registry(at, r string) {
	if r != "" && (strings.Contains(r, "://") || strings.HasPrefix(r, "/") || strings.HasSuffix(r, "/") || strings.ContainsAny(r, " @\t\n")) {
		v.errorf(RuleValue, at, "write host/path, like "+defaultRegistry, "%.80q is not a registry", r)
	}
}
