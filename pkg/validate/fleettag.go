package validate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// checkFleetTags compares the tag with the fleet of a resource in a cloud with the identity of the fleet. A copied repo has the tag of the
// first fleet until somebody changes it. Until then, the copy's resources look like resources of the first fleet, and like its orphans.
// checkFleetTags checks the objects that Flux applies, so it includes patches, shared values and Cluster API's own objects.
func (r *run) checkFleetTags(all []*object) diag.Findings {
	var out diag.Findings
	identity, read := "", false
	said := map[string]bool{} // by file, line of the object, and fleet: one finding for a HelmRelease and all objects of its chart
	for _, templates := range []bool{false, true} {
		for _, o := range all {
			if (o.Template != "") != templates {
				continue
			}
			for _, tag := range o.fleetTags() {
				if !read {
					var err error
					if identity, err = fleetrepo.ReadIdentity(r.tree.dir); err != nil {
						return diag.Findings{finding(RuleFleetTag, fleetrepo.IdentityFile, 1, 1,
							"clusters are tagged with the identity of their fleet, which cannot be compared: "+
								err.Error(), diag.Hint(err))}
					}
					read = true
				}
				key := fmt.Sprintf("%s:%d %s", o.Source.File, o.Source.Line, tag.fleet)
				if tag.fleet == identity || said[key] {
					continue
				}
				said[key] = true
				out = append(out, o.at(tag.field, RuleFleetTag, otherFleet(tag.fleet, identity), fleetTagHint(identity)))
			}
		}
	}
	return out
}

func otherFleet(fleet, identity string) string {
	if identity == "" {
		return fmt.Sprintf("its tag in the cloud names the fleet %s, and this fleet has no %s yet", fleet, fleetrepo.IdentityFile)
	}
	return fmt.Sprintf("its tag in the cloud names the fleet %s, and this fleet is %s", fleet, identity)
}

func fleetTagHint(identity string) string {
	if identity == "" {
		return "in a copy that becomes a fleet of its own, remove the tag until `fleetctl init` has made " + fleetrepo.IdentityFile +
			"; otherwise restore this file"
	}
	return "in a copy that is a fleet of its own, change the tag to the identity in " + fleetrepo.IdentityFile
}

type fleetTag struct{ field, fleet string }

// fleetTags returns the identities of fleets anywhere in an object.
func (o *object) fleetTags() []fleetTag {
	content := maps.Clone(o.content)
	if content == nil && (!mentionsFleet(o.JSON) || kjson.Unmarshal(o.JSON, &content) != nil) {
		return nil
	}
	delete(content, "metadata") // no provider makes tags from metadata
	return fleetTagsIn("", content)
}

func mentionsFleet(src []byte) bool {
	return bytes.Contains(src, []byte(v1alpha1.FleetTag)) || bytes.Contains(src, []byte(v1alpha1.FleetKey))
}

func fleetTagsIn(field string, value any) []fleetTag {
	var out []fleetTag
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below := name
			if field != "" {
				below = field + "." + name
			}
			if text, ok := v[name].(string); ok && v1alpha1.IsFleetMark(name) && fleetrepo.ValidIdentity(text) {
				out = append(out, fleetTag{below, text})
			}
			out = append(out, fleetTagsIn(below, v[name])...)
		}
	case []any:
		for i, item := range v {
			out = append(out, fleetTagsIn(fmt.Sprintf("%s[%d]", field, i), item)...)
		}
	}
	return out
}
