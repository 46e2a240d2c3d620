package validate

import (
	"regexp"
	"slices"
	"strings"
	"sync"
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
	// unused are the files that nothing uses, if it may have some of them.
	unused map[string]bool

	// parts are what its texts tell. Gaps share them.
	parts []*reading
	// opens, outside and placed are true if they are for one of its parts. derives says that the names of its objects may be parts of names.
	opens, derives, outside, placed bool
	// around are the words that may name the namespaces of its objects, by the folder that is built.
	around map[string]map[string]bool
}

func newGap(mgmt string) *gap {
	return &gap{
		mgmt: mgmt, targets: map[string]bool{}, files: map[string]bool{}, folders: map[string]bool{},
		around: map[string]map[string]bool{},
	}
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

// add adds what a text tells.
func (g *gap) add(part *reading) { g.parts = append(g.parts, part) }

// has tells whether one of its texts has a word.
func (g *gap) has(word string) bool {
	return slices.ContainsFunc(g.parts, func(part *reading) bool { return part.words[word] })
}

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

// understand sums its parts up. changed says that kustomize may add something to names. A gap of too many parts for the run may have any
// object.
func (g *gap) understand(in *readings, changed bool) {
	if in.left -= len(g.parts); in.left < 0 {
		g.parts, g.any = nil, true
	}
	g.derives = changed
	for _, part := range g.parts {
		g.any, g.opens, g.outside = g.any || part.any, g.opens || part.opens, g.outside || part.outside
		g.placed, g.derives = g.placed || part.placed, g.derives || part.opens || part.generates
	}
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
	return g.mgmt == p.mgmt && p.target != "" && g.has(p.target[strings.LastIndex(p.target, "/")+1:])
}

// touches tells whether it may have objects of a namespace.
func (g *gap) touches(namespace string) bool {
	if g.everywhere || g.any || !g.placed || g.has(namespace) {
		return true
	}
	for _, words := range g.around {
		if words[namespace] {
			return true
		}
	}
	return false
}

// mayHave tells whether it may have an object of a place.
func (g *gap) mayHave(p place, namespace, name string) bool {
	switch {
	case !g.covers(p):
		return false
	case g.everywhere, g.any, g.has(name):
		return true
	case g.opens && namespace != "" && g.touches(namespace), g.outside && namespace == "":
		return true
	}
	return slices.ContainsFunc(g.parts, func(part *reading) bool {
		return slices.ContainsFunc(part.names, func(known string) bool {
			return strings.Contains(known, anywhere) && isLike(known, name) || g.derives && isPartOf(known, name)
		})
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
		if !g.has(value) {
			return false
		}
	}
	return true
}

// isPartOf tells whether a name is a part of a longer one, between dashes.
func isPartOf(part, name string) bool {
	return strings.Contains("-"+name+"-", "-"+part+"-")
}
