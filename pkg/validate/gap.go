package validate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// gap is a part of what Flux applies that cannot be seen: documents that cannot be read, or a folder that does not build. Its texts tell
// which objects may be in it.
type gap struct {
	mgmt string
	// targets are the places on mgmt: workload clusters, and "" for mgmt itself.
	targets map[string]bool
	// everywhere: it may have any object of any place. any: it may have any object of its places.
	everywhere, any bool
	// files are the files that Flux may build from in it, and folders those that were looked into.
	files, folders map[string]bool

	texts []string
	words map[string]bool
	// names are the names that its texts give to objects, with anywhere in place of what is filled in later.
	names []string
	// opens says that controllers or charts make further objects of it. derives says that the names of its objects may be parts of names.
	// outside says that a chart from outside of the repo is among it.
	opens, derives, outside bool
	// placed says that its texts name namespaces.
	placed bool
}

func newGap(mgmt string) *gap {
	return &gap{mgmt: mgmt, targets: map[string]bool{}, files: map[string]bool{}, folders: map[string]bool{}}
}

// reaches adds the workload clusters that get its objects, or the management cluster itself.
func (g *gap) reaches(targets []string) {
	if len(targets) == 0 {
		g.targets[""] = true
	}
	for _, t := range targets {
		g.targets[t] = true
	}
}

func (g *gap) add(text string) { g.texts = append(g.texts, text) }

// The fields of a text that may not be YAML, as YAML and JSON write them.
var (
	nameFields      = sync.OnceValue(func() *regexp.Regexp { return fieldNamed("name") })
	namespaceFields = sync.OnceValue(func() *regexp.Regexp { return fieldNamed("[a-zA-Z]*[nN]amespace") })
	versionFields   = sync.OnceValue(func() *regexp.Regexp { return fieldNamed("apiVersion") })
	filledIn        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}]*\}|\{\{.*?\}\}`) })
)

func fieldNamed(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[\s{,"'-])` + name + `["']?\s*:\s*["']?([^\s"',}\]#]+)`)
}

// understand reads the texts. changed says that kustomize may add something to names.
func (g *gap) understand(changed bool) {
	text := strings.Join(g.texts, "\n")
	g.texts = nil
	g.any = g.any || !utf8.ValidString(text) || strings.Contains(text, "ResourceSet")
	g.words = words(text)
	for word := range maps.Clone(g.words) { // the parts of paths and of addresses
		for part := range strings.SplitSeq(word, "/") {
			g.words[part] = true
		}
	}
	for _, found := range versionFields().FindAllStringSubmatch(text, -1) {
		g.opens = g.opens || makesMore(found[1], text)
	}
	g.derives = g.opens || changed || strings.Contains(text, "Generator")
	g.outside = strings.Contains(text, "HelmRepository") || strings.Contains(text, "OCIRepository")
	g.placed = namespaceFields().MatchString(text)
	for _, found := range nameFields().FindAllStringSubmatch(filledIn().ReplaceAllString(text, anywhere), -1) {
		if strings.Trim(found[1], anywhere+"-.") == "" {
			g.opens = true // any name
			continue
		}
		g.names = append(g.names, found[1])
	}
	slices.Sort(g.names)
	g.names = slices.Compact(g.names)
}

// makesMore tells whether controllers may make further objects, of other names, from an object of an API version.
func makesMore(version, text string) bool {
	group, _, _ := strings.Cut(version, "/")
	switch {
	case !strings.Contains(version, "/"), group == "apiextensions.k8s.io", group == "admissionregistration.k8s.io",
		group == "kustomize.config.k8s.io":
		return false
	case group == rbacGroup: // which lets a program make objects
		return strings.Contains(text, "create") || strings.Contains(text, "admin") || strings.Contains(text, "edit") ||
			strings.Contains(text, "*")
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		return group == "helm.toolkit.fluxcd.io"
	}
	return !slices.Contains(quietGroups, group)
}

// covers tells whether it may have objects of a place.
func (g *gap) covers(p place) bool {
	if g.everywhere || g.mgmt == p.mgmt && g.targets[p.target] {
		return true
	}
	// A Flux Kustomization in it may apply its objects to the cluster.
	return g.mgmt == p.mgmt && p.target != "" && g.words[p.target[strings.LastIndex(p.target, "/")+1:]]
}

// touches tells whether it may have objects of a namespace.
func (g *gap) touches(namespace string) bool {
	return g.everywhere || g.any || !g.placed || g.words[namespace]
}

// mayHave tells whether it may have an object of a place.
func (g *gap) mayHave(p place, namespace, name string) bool {
	switch {
	case !g.covers(p):
		return false
	case g.everywhere, g.any, g.words[name]:
		return true
	case g.opens && namespace != "" && g.touches(namespace), g.outside && namespace == "":
		return true
	}
	return slices.ContainsFunc(g.names, func(known string) bool {
		return strings.Contains(known, anywhere) && isLike(known, name) || g.derives && isPartOf(known, name)
	})
}

// mayMatch tells whether it may have an object of a namespace with some labels.
func (g *gap) mayMatch(p place, namespace string, wanted map[string]string) bool {
	if !g.covers(p) || !g.touches(namespace) {
		return false
	}
	if g.everywhere || g.any || g.opens {
		return true
	}
	for _, value := range wanted {
		if !g.words[value] {
			return false
		}
	}
	return true
}

// isPartOf tells whether a name is a part of a longer one, between dashes.
func isPartOf(part, name string) bool {
	return strings.Contains("-"+name+"-", "-"+part+"-")
}
