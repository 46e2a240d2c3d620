package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// noticed is what an edit changes of the Flux objects that notifications name.
type noticed struct {
	// before is the repo before the edit.
	before *Repo
	// environments whose Flux objects are others after the edit; empty means all.
	environments []string
	// released tells for environments whether their channel has a revision to follow after the edit.
	released map[string]bool
	// opened are the clouds, by environment, that the edit adds.
	opened map[string]layout.Layout
}

// renotify rewrites the notifications of a management cluster that name other Flux objects after an edit. It leaves notifications alone
// that somebody has changed, and says what they do not name.
func (r *Repo) renotify(e *Edit, m *v1alpha1.ManagementCluster, now noticed) error {
	for i := range r.Fleet.Spec.Notifications {
		n := r.Fleet.Spec.Notifications[i]
		isAbout := func(environment string) bool {
			return len(now.environments) == 0 || slices.Contains(now.environments, environment)
		}
		file := scaffold.NotificationFile(m.Layout(), n.Name)
		if !n.IsOn(m.Name) || !slices.ContainsFunc(n.Environments, isAbout) || !r.exists(file) {
			continue
		}
		there, err := r.read(file)
		if err != nil {
			return err
		}
		wanted, err := scaffold.Notification(r.notificationOptions(m, n, now))
		if err != nil {
			return err
		}
		if manifest.SameText(there, wanted.Content) {
			continue
		}
		ours, err := now.before.wroteNotification(m.Name, n, there)
		if err != nil {
			return err
		}
		if ours {
			r.writeText(&e.Changes, wanted)
		} else if missing := notNamed(there, wanted); len(missing) > 0 {
			e.LeftAlone = append(e.LeftAlone, fmt.Sprintf("%s is left alone: somebody has changed it. Add the %s to its event sources.", file,
				strings.Join(missing, " and the ")))
		}
	}
	return nil
}

// wroteNotification tells whether the text of a notification is as fleetctl has written it. The sources in it may be those of other
// channels than the environments follow: somebody may have changed the channel in fleet.yaml, where no command rewrites the notification.
func (r *Repo) wroteNotification(managementCluster string, n v1alpha1.Notification, there []byte) (bool, error) {
	m, err := r.managementCluster(managementCluster)
	if err != nil {
		return false, err
	}
	o := r.notificationOptions(m, n, noticed{})
	if len(n.Environments) > 0 {
		var known []string
		for _, c := range r.Fleet.Channels() {
			known = append(known, c.Source())
		}
		o.Sources = nil
		for _, source := range eventSources(there) {
			if kind, name := text(yamledit.Find(source, "kind")), text(yamledit.Find(source, "name")); kind == "GitRepository" {
				if !slices.Contains(known, name) {
					return false, nil
				}
				o.Sources = append(o.Sources, name)
			}
		}
		if len(o.Sources) > len(n.Environments) {
			return false, nil // an environment follows one channel, so somebody has added another
		}
	}
	file, err := scaffold.Notification(o)
	return err == nil && manifest.SameText(there, file.Content), err
}

// eventSources returns the event sources of the Alert in a notification's file; none if the file cannot be read.
func eventSources(src []byte) []*yaml.Node {
	documents, err := yamledit.Parse(src)
	if err != nil {
		return nil
	}
	for _, d := range documents {
		if list := yamledit.Find(d, "spec", "eventSources"); list != nil {
			return list.Content
		}
	}
	return nil
}

// notNamed returns the event sources of a wanted file that the present text of the file does not have.
func notNamed(there []byte, wanted manifest.File) []string {
	named := map[string]bool{}
	for _, source := range eventSources(there) {
		named[text(yamledit.Find(source, "kind"))+" "+text(yamledit.Find(source, "name"))] = true
	}
	var missing []string
	for _, source := range eventSources(wanted.Content) {
		kind, name := text(yamledit.Find(source, "kind")), text(yamledit.Find(source, "name"))
		if !named[kind+" "+name] && !named[kind+" *"] {
			missing = append(missing, kind+" "+name)
		}
	}
	return missing
}
