package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ownChannel is the label of a Flux object that keeps its own source.
const ownChannel = "fleetctl.dev/channel"

// checkChannels reports applied objects that do not follow the channel of their environment.
func (r *run) checkChannels(all []*object, clusters []*cluster) diag.Findings {
	c := &channelCheck{run: r, reported: map[string]bool{}}
	c.environments(clusters)
	shared := c.sharedCharts(all)
	for _, o := range all {
		if o.content != nil {
			continue
		}
		c.source(o)
		c.release(o, shared)
	}
	c.production(all, clusters)
	return c.findings
}

type channelCheck struct {
	*run
	reported map[string]bool
	findings diag.Findings
}

// environments checks that the Flux Kustomization of an environment's folder takes it from the environment's channel, and that each
// environment with clusters has such a Flux Kustomization.
func (c *channelCheck) environments(clusters []*cluster) {
	applied := map[string]bool{}
	for _, k := range c.rendered.Kustomizations {
		for _, cl := range clusters {
			dir := path.Dir(cl.dir)
			if k.ManagementCluster == cl.mgmt.Name && (dir == k.Path || strings.HasPrefix(dir, k.Path+"/")) {
				applied[dir] = true
			}
		}
		if len(k.Targets) > 0 || k.Environment == "" || !strings.HasSuffix(k.Path, "/clusters/"+k.Environment) {
			continue
		}
		// Before its first tag, a channel has no source. Until then an environment that has changed to the channel keeps its old source.
		want := c.fleet.ChannelOf(k.Environment)
		if k.GitSource == "" || k.GitSource == want.Source() || k.Source.File == "" || c.waits(k.ManagementCluster, want) {
			continue
		}
		hint := "the source of that channel is " + want.Source() + ": `fleetctl environment set " + k.Environment + " --channel " + want.Name +
			"` writes it there"
		if want.IsTag() {
			hint += ", if the channel's tag has the folder; otherwise `fleetctl promote --channel " + want.Name + "` does, with the next tag"
		}
		c.add(k.Source.File, k.Source.Line, "spec.sourceRef.name", RuleChannel,
			fmt.Sprintf("environment %s follows the channel %s, and is applied from the source %s", k.Environment, want.Name, k.GitSource), hint)
		if c.mayWait(k.Environment, k.GitSource) {
			c.findings[len(c.findings)-1].Severity = diag.SeverityWarning
			c.reported[k.ManagementCluster+"/"+k.Environment] = true // its charts wait for the same tag
		}
	}
	for _, cl := range clusters {
		dir := path.Dir(cl.dir)
		if slices.ContainsFunc(c.gaps(), func(g *gap) bool { return g.everywhere || g.files[cl.file.path] || g.unused[cl.file.path] }) {
			continue // what applies it may be in what cannot be read
		}
		if applied[dir] || c.reported[dir] || !c.tree.has(path.Join(cl.mgmt.Dir(), "flux-system")) || c.unpromoted(cl) {
			continue
		}
		c.reported[dir] = true
		c.findings = append(c.findings, c.appliedByNone(cl, dir))
	}
}

// appliedByNone is the finding about a folder that nothing applies. For an environment of a channel of tags it is a warning: the promotion
// that brings the folder writes the Flux Kustomization, too.
func (c *channelCheck) appliedByNone(cl *cluster, dir string) diag.Finding {
	if channel := c.fleet.ChannelOf(cl.environment); channel.IsTag() {
		found := finding(RuleNotApplied, cl.file.path, 1, 0,
			fmt.Sprintf("nothing in %s applies the folder %s yet: it waits for a tag of channel %s", cl.mgmt.Dir(), dir, channel.Name),
			"`fleetctl promote --channel "+channel.Name+"` makes the tag, and what applies the folder")
		found.Severity = diag.SeverityWarning
		return found
	}
	return finding(RuleNotApplied, cl.file.path, 1, 0,
		fmt.Sprintf("nothing in %s applies the folder %s: Flux never makes its clusters", cl.mgmt.Dir(), dir),
		"`"+diag.ShellCommand("fleetctl", "environment", "add", cl.environment)+"` writes the Flux Kustomization that does")
}

// unpromoted tells whether a cluster's environment waits for its first promotion, which writes the source of the channel and the Flux
// Kustomization of the environment.
func (c *channelCheck) unpromoted(cl *cluster) bool {
	return c.waits(cl.mgmt.Name, c.fleet.ChannelOf(cl.environment))
}

// waits tells whether a channel has no source yet on a management cluster. The first promotion writes the source of a channel of tags.
// `fleetctl init`, which makes the management cluster, writes the source of a channel that follows a branch.
func (c *channelCheck) waits(cluster string, channel v1alpha1.Channel) bool {
	m, err := c.fleet.ManagementCluster(cluster)
	if err != nil || channel.Name == v1alpha1.MainChannel || c.tree.has(path.Join(m.Dir(), "sources", channel.Source())) {
		return false
	}
	return channel.IsTag() || !c.tree.has(path.Join(m.Dir(), "flux-system"))
}

// mayWait tells whether an environment of a channel of tags may still be applied from the source of another channel, because no tag has the
// folder of the environment yet. Production may not wait on a branch.
func (c *channelCheck) mayWait(environment, source string) bool {
	now, ok := c.channelOf(source)
	env, _ := c.fleet.Environment(environment)
	return ok && c.fleet.ChannelOf(environment).IsTag() && (now.IsTag() || !env.IsProduction())
}

// sharedCharts checks that the charts of an environment's clusters come from the environment's channel. It returns the source of each
// HelmChart.
func (c *channelCheck) sharedCharts(all []*object) map[known]string {
	sources := map[known]string{}
	for _, o := range all {
		if o.Kind != "HelmChart" || o.content != nil {
			continue
		}
		for _, ref := range o.refs {
			if ref.kind == "GitRepository" && ref.namespace == "flux-system" {
				sources[known{place: o.places()[0], kind: o.Kind, namespace: o.Namespace, name: o.Name}] = ref.name
				c.chart(o, ref.field, ref.name)
			}
		}
	}
	return sources
}

// release checks that the chart of a cluster comes from the channel of its environment.
func (c *channelCheck) release(o *object, shared map[known]string) {
	if o.Kind != "HelmRelease" {
		return
	}
	for _, ref := range o.refs {
		switch ref.kind {
		case "GitRepository":
			if ref.namespace == "flux-system" {
				c.chart(o, ref.field, ref.name)
			}
		case "HelmChart":
			c.chart(o, ref.field, shared[known{place: o.places()[0], kind: ref.kind, namespace: ref.namespace, name: ref.name}])
		}
	}
}

// chart checks the source of a chart that an object of an environment names.
func (c *channelCheck) chart(o *object, field, source string) {
	want := c.fleet.ChannelOf(o.Environment).Source()
	key := o.ManagementCluster + "/" + o.Environment
	switch {
	case o.Environment == "" || len(o.Targets) > 0 || o.GitSource == "" || c.waits(o.ManagementCluster, c.fleet.ChannelOf(o.Environment)):
		return
	case source == want || !c.isChannelSource(source) || o.keepsSource():
		return
	case c.reported[key]:
		return // one finding is enough: all of them lack the same patch
	}
	c.reported[key] = true
	c.findings = append(c.findings, o.at(field, RuleChannel,
		fmt.Sprintf("environment %s follows the source %s, and this chart comes from %s", o.Environment, want, source),
		"the Flux Kustomization clusters-"+o.Environment+" sets that of its HelmCharts with a patch; an object with the label "+ownChannel+
			": own keeps its source"))
}

func (o *object) keepsSource() bool {
	var meta struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return kjson.Unmarshal(o.JSON, &meta) == nil && meta.Metadata.Labels[ownChannel] == "own"
}

func (c *channelCheck) isChannelSource(name string) bool {
	_, ok := c.channelOf(name)
	return ok
}

func (c *channelCheck) channelOf(source string) (v1alpha1.Channel, bool) {
	for _, ch := range c.fleet.Channels() {
		if ch.Source() == source {
			return ch, true
		}
	}
	return v1alpha1.Channel{}, false
}

// source checks that the GitRepository of a channel has the channel's branch or tag, and that production is at a tag.
func (c *channelCheck) source(o *object) {
	if o.Kind != "GitRepository" || o.Namespace != "flux-system" || len(o.Targets) > 0 {
		return
	}
	channel, ok := c.channelOf(o.Name)
	if !ok {
		return
	}
	_, ref, ok := o.gitSource()
	if !ok {
		return // its schema reports it
	}
	switch {
	case channel.IsTag() && ref.moves():
		rule := RuleChannel
		text := fmt.Sprintf("the channel %s goes from tag to tag (%s), and is at a branch here", channel.Name, channel.Tag)
		for _, e := range c.fleet.EnvironmentsOf(channel.Name) {
			if env, _ := c.fleet.Environment(e); env.IsProduction() {
				rule, text = RuleProduction, onBranch(e)
			}
		}
		c.findings = append(c.findings, o.at("spec.ref", rule, text, promotePuts))
	case channel.IsTag() && ref.Tag != "" && !strings.HasPrefix(ref.Tag, channel.TagPrefix()):
		c.findings = append(c.findings, o.at("spec.ref.tag", RuleChannel,
			fmt.Sprintf("the tag %.60q is none of the channel %s: %s", ref.Tag, channel.Name, channel.Tag), ""))
	case !channel.IsTag() && ref.Branch != channel.Branch:
		c.findings = append(c.findings, o.at("spec.ref", RuleChannel,
			fmt.Sprintf("the channel %s follows the branch %s, and this source does not", channel.Name, channel.Branch), ""))
	}
}

// add adds a finding about a field of the document at a line.
func (c *channelCheck) add(file string, line int, field, rule, summary, hint string) {
	f := finding(rule, file, line, 0, field+": "+summary, hint)
	if d := c.tree.documentAt(file, line); d != nil {
		node := locate(d.node, field)
		f.Line, f.Column = node.Line, node.Column
	}
	c.findings = append(c.findings, f)
}
