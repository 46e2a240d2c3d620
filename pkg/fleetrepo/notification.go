package fleetrepo

import (
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// notifier is the controller of Flux that sends notifications.
const notifier = "notification-controller"

// Notification is a notification that fleet.yaml declares.
type Notification struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Severity of the reported events: error, or info for all events.
	Severity string `json:"severity"`
	// Environments that the notification reports on. Empty: everything on the management clusters.
	Environments []string `json:"environments"`
	// ManagementClusters that send the notification.
	ManagementClusters []string `json:"managementClusters"`
	// Secret in flux-system that the notification needs.
	Secret string `json:"secret,omitempty"`
}

// Notifications lists the notifications of fleet.yaml, in its order.
func (r *Repo) Notifications() ([]Notification, error) {
	all := make([]Notification, 0, len(r.Fleet.Spec.Notifications))
	for i := range r.Fleet.Spec.Notifications {
		n := &r.Fleet.Spec.Notifications[i]
		one := Notification{
			Name: n.Name, Type: string(n.Type), Severity: n.Level(), Environments: append([]string{}, n.Environments...),
			ManagementClusters: []string{}, Secret: n.Secret,
		}
		for _, m := range r.notified(n) {
			if r.exists(scaffold.NotificationFile(m.Layout(), n.Name)) {
				one.ManagementClusters = append(one.ManagementClusters, m.Name)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// NotificationNames are the names of the notifications in fleet.yaml.
func (r *Repo) NotificationNames() []string {
	var names []string
	for i := range r.Fleet.Spec.Notifications {
		names = append(names, r.Fleet.Spec.Notifications[i].Name)
	}
	return names
}

// notified returns the management clusters that send a notification.
func (r *Repo) notified(n *v1alpha1.Notification) []*v1alpha1.ManagementCluster {
	var all []*v1alpha1.ManagementCluster
	for i := range r.Fleet.Spec.ManagementClusters {
		if m := &r.Fleet.Spec.ManagementClusters[i]; n.IsOn(m.Name) {
			all = append(all, m)
		}
	}
	return all
}

// NotificationSecretFiles returns the files with the Secret of a notification, one for each management cluster that
// sends it. Error: an unknown management cluster.
func (r *Repo) NotificationSecretFiles(n *v1alpha1.Notification) ([]string, error) {
	for _, name := range n.ManagementClusters {
		if _, err := r.managementCluster(name); err != nil {
			return nil, err
		}
	}
	var files []string
	for _, l := range r.notifiedLayouts(n) {
		files = append(files, scaffold.NotificationSecretFile(l, n.Name))
	}
	return files, nil
}

// notifiedLayouts returns the layouts of the management clusters that send a notification.
func (r *Repo) notifiedLayouts(n *v1alpha1.Notification) []layout.Layout {
	var all []layout.Layout
	for _, m := range r.notified(n) {
		all = append(all, m.Layout())
	}
	return all
}

// AddNotification declares a notification in fleet.yaml, and writes Flux's objects for it to the folders of its management clusters. If
// fleet.yaml already has the same one, it writes only missing files. Errors: another notification of that name, unknown environments and
// management clusters, a Flux without notification-controller.
func (r *Repo) AddNotification(n v1alpha1.Notification) (*Edit, error) {
	if err := scaffold.CheckName("notification", n.Name, 50); err != nil {
		return nil, err
	}
	if have := r.Fleet.Spec.Flux.Components; len(have) > 0 && !slices.Contains(have, notifier) {
		return nil, diag.Errorf("add it to spec.flux.components in "+v1alpha1.FileName+", and run `fleetctl init`",
			"Flux runs without %s, which sends notifications", notifier)
	}
	n.Environments, n.ManagementClusters = once(n.Environments), once(n.ManagementClusters)
	for _, name := range n.Environments {
		if names := r.EnvironmentNames(); !slices.Contains(names, name) {
			return nil, unknownEnvironment(name, names)
		}
	}
	e := &Edit{Summary: fmt.Sprintf("Add notification %s to %s", n.Name, n.Type), AsWanted: "notification " + n.Name + " is there"}
	after := r
	if i := slices.Index(r.NotificationNames(), n.Name); i < 0 {
		var err error
		if after, err = r.editFleet(e, func(f *fleetFile) error { return f.append("notifications", v1alpha1.Node(n)) }); err != nil {
			return nil, inFlags(err, fmt.Sprintf("spec.notifications[%d]", len(r.Fleet.Spec.Notifications)), map[string]string{
				"": "give --address https://host/owner/repository", "channel": "leave it out", "severity": "give error or info",
			})
		}
	} else if !reflect.DeepEqual(r.Fleet.Spec.Notifications[i], n) {
		return nil, diag.Usage("choose another name, or `fleetctl notification remove "+n.Name+"` first",
			"there is a notification %s already, and it is another one", n.Name)
	}
	for _, m := range after.notified(&n) {
		if err := after.writeNotification(e, m, n); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// notificationOptions returns the options of a notification on a management cluster after an edit.
func (r *Repo) notificationOptions(m *v1alpha1.ManagementCluster, n v1alpha1.Notification, now noticed) scaffold.NotificationOptions {
	o := scaffold.NotificationOptions{
		Notification: n, Fleet: r.Fleet.Metadata.Name, ManagementCluster: m.Name, Layout: m.Layout(),
		GitURL: r.Fleet.Spec.Git.URL,
	}
	for _, env := range n.Environments {
		released, told := now.released[env]
		o.Sources = append(o.Sources, r.followed(m, m.Layout(), env, released || !told && r.isReleased(m, m.Layout(), env)).Source())
		for _, l := range r.Fleet.Layouts(m) {
			if !l.IsHome() && (r.uses(l, env) || now.opened[env] == l) {
				o.Further = append(o.Further, l.ClustersName(env))
			}
		}
	}
	return o
}

func (r *Repo) writeNotification(e *Edit, m *v1alpha1.ManagementCluster, n v1alpha1.Notification) error {
	o := r.notificationOptions(m, n, noticed{})
	file, err := scaffold.Notification(o)
	if err != nil {
		return err
	}
	if r.exists(file.Path) {
		there, err := r.read(file.Path)
		if err != nil {
			return err
		}
		if ours, err := r.wroteNotification(m.Name, n, there); err != nil {
			return err
		} else if !ours {
			e.LeftAlone = append(e.LeftAlone, file.Path+" is left alone: somebody has changed it.")
			return nil
		}
	}
	r.writeText(&e.Changes, file)
	return r.enlist(&e.Changes, m.Layout().Management(), file.Path, true)
}

// RemoveNotification removes a notification from fleet.yaml, with its objects and the Secret that was made for it.
// Error: an unknown notification.
func (r *Repo) RemoveNotification(name string) (*Edit, error) {
	i := slices.Index(r.NotificationNames(), name)
	if i < 0 {
		return nil, diag.Unknown("notification", name, r.NotificationNames(), "`fleetctl notification add "+name+"` makes one")
	}
	e := &Edit{Summary: "Remove notification " + name}
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	at := yamledit.Path{"spec", "notifications", i}
	if len(r.Fleet.Spec.Notifications) == 1 {
		at = at[:2]
	}
	if fleet.src, err = yamledit.Remove(fleet.src, 0, at); err != nil {
		return nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "remove it in an editor")
	}
	if _, err := fleet.finish(&e.Changes); err != nil {
		return nil, err
	}
	for _, l := range r.layouts() {
		for _, file := range []string{scaffold.NotificationFile(l, name), scaffold.NotificationSecretFile(l, name)} {
			if r.exists(file) {
				e.Changes.Delete(file)
			}
			if err := r.enlist(&e.Changes, l.Management(), file, false); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// checkNotNotified returns an error if a notification names what is to be removed, in the list that the field of the notification is.
func (r *Repo) checkNotNotified(field, name string, list func(n *v1alpha1.Notification) []string) error {
	for i := range r.Fleet.Spec.Notifications {
		if n := &r.Fleet.Spec.Notifications[i]; slices.Contains(list(n), name) {
			return diag.Errorf(fmt.Sprintf("`fleetctl notification remove %s`, or take %s out of spec.notifications[%d].%s in %s", n.Name, name,
				i, field, v1alpha1.FileName), "notification %s names %s", n.Name, name)
		}
	}
	return nil
}

// EnlistNotificationSecret adds the file of a Secret to the list of files that Flux applies for a management cluster,
// if there is such a list.
func (r *Repo) EnlistNotificationSecret(e *Edit, file string) error {
	for i := range r.Fleet.Spec.ManagementClusters {
		if top := r.Fleet.Spec.ManagementClusters[i].Layout().Management(); path.Dir(path.Dir(file)) == top {
			return r.enlist(&e.Changes, top, file, true)
		}
	}
	return nil
}
