package validate

import (
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// gitRef is spec.ref of a GitRepository.
type gitRef struct {
	Branch string `json:"branch"`
	Tag    string `json:"tag"`
	SemVer string `json:"semver"`
	Commit string `json:"commit"`
	Name   string `json:"name"`
}

// gitSource reads a GitRepository. ok is false if a field has a wrong type, which its schema reports.
func (o *object) gitSource() (url string, ref gitRef, ok bool) {
	var repo struct {
		Spec struct {
			URL string `json:"url"`
			Ref gitRef `json:"ref"`
		} `json:"spec"`
	}
	err := kjson.Unmarshal(o.JSON, &repo)
	return repo.Spec.URL, repo.Spec.Ref.plain(), err == nil
}

const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// plain is the ref with the field that source-controller uses. It prefers a name to all other fields but a commit.
func (r gitRef) plain() gitRef {
	if r.Name == "" {
		return r
	}
	out := gitRef{Commit: r.Commit}
	if tag, ok := strings.CutPrefix(r.Name, tagsPrefix); ok {
		out.Tag = tag
	} else {
		out.Branch = strings.TrimPrefix(r.Name, headsPrefix)
	}
	return out
}

// moves tells whether the source moves with every push.
func (r gitRef) moves() bool { return r.Tag == "" && r.SemVer == "" && r.Commit == "" }

// production checks the sources that could bypass the channels: the source of a workload cluster's own Flux, and sources of other names for
// the fleet repo. The sources of the channels are checked on the management cluster.
func (c *channelCheck) production(all []*object, clusters []*cluster) {
	environments := map[place]string{}
	for _, cl := range clusters {
		environments[place{cl.mgmt.Name, cl.name}] = cl.environment
	}
	tags := slices.ContainsFunc(c.fleet.Channels(), v1alpha1.Channel.IsTag)
	isProduction := func(o *object) string {
		for _, p := range o.places() {
			e := environments[p]
			if p.target == "" {
				e = o.Environment
			}
			env, ok := c.fleet.Environment(e)
			// A fleet without tags has only branches to follow, and so has a channel before its first tag.
			if ok && env.IsProduction() && tags && !c.waits(p.mgmt, c.fleet.ChannelOf(e)) {
				return e
			}
		}
		return ""
	}
	own := c.ownURLs(all)
	moving := map[known]bool{}
	for _, o := range all {
		if o.Kind != "GitRepository" || o.content != nil || len(o.Targets) == 0 && o.Namespace == "flux-system" && c.isChannelSource(o.Name) {
			continue
		}
		url, ref, ok := o.gitSource()
		if !ok || !ref.moves() || !isOwn(own, url) {
			continue
		}
		if e := isProduction(o); e != "" && o.Name == "flux-system" && o.Namespace == "flux-system" {
			f := o.at("spec.ref", RuleProduction, onBranch(e), promotePuts)
			if !slices.ContainsFunc(c.findings, func(there diag.Finding) bool {
				return there.Rule == f.Rule && there.File == f.File && there.Line == f.Line // as the source of the channel
			}) {
				c.findings = append(c.findings, f)
			}
			continue
		}
		for _, p := range o.places() {
			moving[known{place: p, namespace: o.Namespace, name: o.Name}] = true
		}
	}
	if len(moving) == 0 {
		return
	}
	for _, o := range all {
		e := isProduction(o)
		if e == "" || o.content != nil || o.keepsSource() {
			continue
		}
		for _, ref := range o.refs {
			follows := ref.kind == "GitRepository" && slices.ContainsFunc(o.places(), func(p place) bool {
				return moving[known{place: p, namespace: ref.namespace, name: ref.name}]
			})
			if follows {
				c.findings = append(c.findings, o.at(ref.field, RuleProduction, onBranch(e)+": "+ref.name+" is the fleet repo at one",
					"name the source of its channel"))
			}
		}
	}
}

// isOwn tells whether a URL names the same repository as one of own, the URLs of the fleet repo.
func isOwn(own []string, url string) bool {
	return slices.ContainsFunc(own, func(mine string) bool { return mine == url || v1alpha1.SeemsSameRepository(mine, url) })
}

func onBranch(environment string) string {
	return fmt.Sprintf("production environment %s would follow a branch", environment)
}

const promotePuts = "`fleetctl promote` puts it at a tag"

// ownURLs returns the URLs of the fleet repo.
func (c *channelCheck) ownURLs(all []*object) []string {
	urls := []string{c.fleet.Spec.Git.URL}
	for _, o := range all {
		if o.Kind == "GitRepository" && o.Namespace == "flux-system" && o.content == nil && c.isChannelSource(o.Name) {
			if url, _, ok := o.gitSource(); ok {
				urls = append(urls, url)
			}
		}
	}
	return urls
}
