package fleetrepo

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// productionAlong returns the production environments that follow a branch and are not named, if c is the first channel
// of tags.
func (r *Repo) productionAlong(c v1alpha1.Channel, named []string) (along []string) {
	if !c.IsTag() || slices.ContainsFunc(r.Fleet.Channels(), v1alpha1.Channel.IsTag) {
		return nil
	}
	for _, e := range r.Fleet.Spec.Environments {
		if e.IsProduction() && !slices.Contains(named, e.Name) {
			along = append(along, e.Name)
		}
	}
	return along
}

// anotherChannel is a hint for the removal of a channel that environments follow. Production never follows the branch:
// without another channel of tags, the environment has to stop being production.
func (r *Repo) anotherChannel(name string, followers []string) string {
	another := v1alpha1.MainChannel
	for _, c := range r.Fleet.Channels() {
		if c.IsTag() && c.Name != name {
			another = c.Name
		}
	}
	production := func(name string) bool {
		e, _ := r.Fleet.Environment(name)
		return e.IsProduction()
	}
	if i := slices.IndexFunc(followers, production); i >= 0 && another == v1alpha1.MainChannel {
		return "production follows only tags: add another channel for " + followers[i] +
			" (`fleetctl channel add`), or make it a non-production environment: " +
			"`fleetctl environment set " + followers[i] + " --channel " + v1alpha1.MainChannel + " --production=false`"
	}
	return "give each another one first: `fleetctl environment set " + followers[0] + " --channel " + another + "`"
}
