package fleetrepo

import (
	"bytes"
	"maps"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// tagFleet gives the values of a new cluster the tag that proves in the cloud whose it is, where its flavour's cloud takes such a tag and the fleet has an
// identity. What the user has set stays, and so does a cluster that is in file already without one: it is the very one that is wanted.
func (r *Repo) tagFleet(flavour, file string, values map[string]any) error {
	if providerOf(flavour) != "aws" {
		return nil
	}
	identity, err := ReadIdentity(r.Dir)
	if err != nil || identity == "" {
		return err
	}
	if r.exists(file) {
		if src, err := r.read(file); err != nil || !bytes.Contains(src, []byte(v1alpha1.FleetTag)) {
			return err
		}
	}
	there, ok := values["tags"].(map[string]any)
	if !ok && values["tags"] != nil {
		return nil // the chart's schema refuses it
	}
	if _, set := there[v1alpha1.FleetTag]; set {
		return nil
	}
	tags := map[string]any{v1alpha1.FleetTag: identity}
	maps.Copy(tags, there)
	values["tags"] = tags
	return nil
}
