package v1alpha1

import (
	"slices"
	"strings"
)

const (
	// MainChannel is the channel that every fleet has: the branch of spec.git.
	MainChannel = "main"
	// mainSource is the GitRepository of the channel main. Flux's own manifests come from it too.
	mainSource = "flux-system"
)

// Channels returns all channels of the fleet: main first, then the others in the order of fleet.yaml. The result is the same before and
// after SetDefaults.
func (f *Fleet) Channels() []Channel {
	branch := f.Spec.Git.Branch
	setDefault(&branch, DefaultBranch)
	all := []Channel{{Name: MainChannel, Branch: branch}}
	for _, c := range f.Spec.Channels {
		if c.Name != MainChannel {
			all = append(all, c)
		}
	}
	return all
}

// Channel returns the channel of this name. An empty name stands for main. The result is false if the fleet has no such channel.
func (f *Fleet) Channel(name string) (Channel, bool) {
	setDefault(&name, MainChannel)
	all := f.Channels()
	i := slices.IndexFunc(all, func(c Channel) bool { return c.Name == name })
	if i < 0 {
		return Channel{}, false
	}
	return all[i], true
}

// Environment returns the environment of this name. If fleet.yaml does not list it, the result has only the name, and false.
func (f *Fleet) Environment(name string) (Environment, bool) {
	i := slices.IndexFunc(f.Spec.Environments, func(e Environment) bool { return e.Name == name })
	if i < 0 {
		return Environment{Name: name}, false
	}
	return f.Spec.Environments[i], true
}

// ChannelOf returns the channel that an environment follows. It returns main for an environment that fleet.yaml does not list.
func (f *Fleet) ChannelOf(environment string) Channel {
	e, _ := f.Environment(environment)
	c, ok := f.Channel(e.Channel)
	if !ok { // Validate reports the unknown channel
		c, _ = f.Channel(MainChannel)
	}
	return c
}

// EnvironmentsOf returns the names of the environments that follow a channel, in the order of fleet.yaml.
func (f *Fleet) EnvironmentsOf(channel string) []string {
	names := []string{}
	for _, e := range f.Spec.Environments {
		if f.ChannelOf(e.Name).Name == channel {
			names = append(names, e.Name)
		}
	}
	return names
}

// IsTag tells whether the channel follows tags. Otherwise it follows a branch.
func (c Channel) IsTag() bool { return c.Tag != "" }

// Source returns the name of the channel's GitRepository in the namespace flux-system of each management cluster.
func (c Channel) Source() string {
	if c.Name == MainChannel {
		return mainSource
	}
	return c.Name
}

// TagPrefix returns the text before the version in the channel's tags. It returns "" for a channel that follows a branch.
func (c Channel) TagPrefix() string { return strings.TrimSuffix(c.Tag, "*") }

// IsProduction tells whether the environment is for production. Its name decides if fleet.yaml does not say it.
func (e Environment) IsProduction() bool {
	if e.Production != nil {
		return *e.Production
	}
	first, _, _ := strings.Cut(e.Name, "-")
	return first == "prod" || first == "production"
}

func (v *validator) channels(f *Fleet) {
	at := func(i int) string { return itemPath("spec.channels", i) }
	for i, c := range f.Spec.Channels {
		v.label(fieldPath(at(i), "name"), c.Name, maxLabel)
		if c.Name == mainSource {
			v.errorf(RuleValue, fieldPath(at(i), "name"), "choose another name", "%s is the source of the channel %s", mainSource, MainChannel)
		}
		v.channel(at(i), c, f)
	}
	unique(v, f.Spec.Channels, func(i int) string { return fieldPath(at(i), "name") }, "channel", func(c Channel) string { return c.Name })
	unique(v, f.Spec.Channels, func(i int) string { return fieldPath(at(i), "tag") }, "pattern of tags",
		func(c Channel) string { return c.Tag })
}

// channel checks what a channel follows.
func (v *validator) channel(at string, c Channel, f *Fleet) {
	branch, tag := fieldPath(at, "branch"), fieldPath(at, "tag")
	main, _ := f.Channel(MainChannel)
	switch {
	case v.broken(branch) || v.broken(tag):
	case c.Branch != "" && c.Tag != "":
		v.errorf(RuleValue, at, "keep one of them", "channel follows both a branch and tags")
	case c.Name == MainChannel && (c.Tag != "" || c.Branch != "" && c.Branch != main.Branch):
		v.errorf(RuleValue, at, "choose another name for a channel of tags or of another branch", "the channel %s is the branch of spec.git: %s",
			MainChannel, main.Branch)
	case c.Name != MainChannel && c.Branch == "" && c.Tag == "":
		v.errorf(RuleRequired, at, "add `tag: v*`, or `branch: ` and its name", "channel follows neither a branch nor tags")
	}
	if c.Branch != "" && !IsBranch(c.Branch) {
		v.errorf(RuleValue, branch, "", "%.80q is not a valid name of a branch", c.Branch)
	}
	if c.Tag != "" && !isTagPattern(c.Tag) {
		v.errorf(RuleValue, tag, "write v*, or another prefix, with a * for the version", "%.80q is not a pattern of tags", c.Tag)
	}
}

// isTagPattern tells whether the pattern ends in its only *, and is a valid tag name with a version in the place of the *.
func isTagPattern(pattern string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	return ok && IsBranch(prefix+"0.1.0")
}

func (v *validator) environments(f *Fleet) {
	at := func(i int) string { return itemPath("spec.environments", i) }
	var names []string
	tags := false
	for _, c := range f.Channels() {
		names = append(names, c.Name)
		tags = tags || c.IsTag()
	}
	for i, e := range f.Spec.Environments {
		v.label(fieldPath(at(i), "name"), e.Name, maxLabel)
		channel := fieldPath(at(i), "channel")
		if e.Channel != "" && !v.broken("spec.channels") && !v.oneOf(channel, "channel", e.Channel, names) {
			continue
		}
		if c := f.ChannelOf(e.Name); tags && e.IsProduction() && !c.IsTag() {
			v.errorf(RuleProduction, channel, "choose a channel of tags, or set `production: false`",
				"production environment %.80q follows the branch %s", e.Name, c.Branch)
		}
	}
	unique(v, f.Spec.Environments, func(i int) string { return fieldPath(at(i), "name") }, "environment",
		func(e Environment) string { return e.Name })
}
