package fleetrepo

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// promotion is a move of a channel to a tag. The zero value moves no channel.
type promotion struct {
	// tag is empty if the channel does not move.
	tag string
	// cluster, if not empty, is the only management cluster to change.
	cluster string
	// files are the files of the tag that the channel moves to.
	files fs.FS
}

// CheckPromotable returns an error if a promotion would move nothing, because none of the management clusters, or not
// the named one, follows the fleet repo yet.
func (r *Repo) CheckPromotable(channel, cluster string) error {
	var missing []string
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if cluster != "" && m.Name != cluster {
			continue
		}
		l := m.Layout()
		if r.exists(l.SourceFile(channel)) || r.exists(l.SyncFile()) {
			return nil
		}
		missing = append(missing, l.SyncFile())
	}
	if len(missing) == 0 {
		return nil // Promote reports an unknown management cluster
	}
	return diag.NotReady("run `fleetctl init`, which writes it, and commit and push what it wrote",
		"nothing would follow a tag of channel %s: there is no %s", channel, strings.Join(missing, ", "))
}

// awaits tells whether Flux cannot apply the folder of an environment from the environment's channel yet: the tag that the channel is at,
// or that it moves to, lacks the folder, and Flux would report that as an error. What follows the channel already goes on doing so.
func (r *Repo) awaits(m *v1alpha1.ManagementCluster, at layout.Layout, name string, released bool, move promotion) (bool, error) {
	channel := r.Fleet.ChannelOf(name)
	if !released || !channel.IsTag() {
		return false, nil
	}
	files, exists := move.files, r.exists(at.ClustersFile(name))
	switch {
	case exists && r.appliedFrom(m, at, name) == channel.Source():
		return false, nil
	case exists && move.tag == "":
		var err error
		if files, err = r.filesOf(m, channel); err != nil {
			return false, err
		}
	}
	if files == nil {
		return true, nil
	}
	_, err := fs.Stat(files, at.Environment(name))
	return err != nil, nil
}

// filesOf returns the files of the tag that a channel is at on a management cluster; nil without a Git repository.
func (r *Repo) filesOf(m *v1alpha1.ManagementCluster, channel v1alpha1.Channel) (fs.FS, error) {
	if r.Tagged == nil {
		return nil, nil
	}
	tag, err := r.tagOf(m, channel.Name)
	if err != nil || tag == "" {
		return nil, err
	}
	files, err := r.Tagged(tag)
	return files, diag.Wrap("look at what tag "+tag+" of channel "+channel.Name+" has", err, "git fetch --tags")
}

// untilThen says, after awaitsPromotion, which channel a running environment stays with meanwhile. It is empty for an environment that Flux
// does not apply yet.
func (r *Repo) untilThen(m *v1alpha1.ManagementCluster, at layout.Layout, name string) string {
	now := r.followed(m, at, name, false)
	if now == r.Fleet.ChannelOf(name) {
		return ""
	}
	return fmt.Sprintf(" Until then, environment %s stays with channel %s.", name, now.Name)
}

// awaitsPromotion adds a note about a folder that Flux does not apply yet.
func awaitsPromotion(dir, channel string) string {
	return fmt.Sprintf("The tag that channel %s is at does not have %s: Flux applies that folder from the next `fleetctl promote` on.",
		channel, dir)
}
