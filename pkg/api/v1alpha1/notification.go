package v1alpha1

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// NotificationType is the kind of a notification's receiver.
type NotificationType string

// The types of notifications that send messages. Each forge is a type too: it receives the status of commits.
const (
	NotifySlack   NotificationType = "slack"
	NotifyTeams   NotificationType = "teams"
	NotifyWebhook NotificationType = "webhook"
)

// NotificationTypes returns all types of notifications.
func NotificationTypes() []NotificationType {
	types := []NotificationType{NotifySlack, NotifyTeams, NotifyWebhook}
	for _, forge := range ForgeTypes() {
		types = append(types, NotificationType(forge))
	}
	return types
}

// IsCommitStatus tells whether the notification sets the status of commits at a forge. Otherwise it sends messages.
func (t NotificationType) IsCommitStatus() bool {
	return slices.Contains(ForgeTypes(), ForgeType(t))
}

// Notification reports to people, or to a forge, what Flux on the management clusters does. `fleetctl notification add` writes Flux's
// objects for it.
type Notification struct {
	// Name of the notification, and of its Provider and Alert: a DNS label.
	Name string `json:"name"`
	// Type of the receiver: slack, teams or webhook for messages; github, gitlab or gitea for the status of commits.
	Type NotificationType `json:"type"`
	// Address of the webhook, if it is not secret, or of the repository whose commits get a status. Default: the key address of the
	// Secret; for commits spec.git.url.
	Address string `json:"address,omitempty"`
	// Channel of Slack. Default: the webhook's channel.
	Channel string `json:"channel,omitempty"`
	// Secret in flux-system with the key address, the webhook, or the key token. Default: notification-<name>, which `fleetctl
	// notification add` makes.
	Secret string `json:"secret,omitempty"`
	// Severity is error for failures only, or info for all events. Default: error; info for the status of commits.
	Severity string `json:"severity,omitempty"`
	// Environments whose events are reported. Default: all events of the management clusters.
	Environments []string `json:"environments,omitempty"`
	// ManagementClusters with this notification. Default: all.
	ManagementClusters []string `json:"managementClusters,omitempty"`
}

// Level returns the effective severity: the declared severity, or else info for a commit status and error for a message.
func (n *Notification) Level() string {
	if n.Severity == "" && n.Type.IsCommitStatus() {
		return "info"
	}
	return cmp.Or(n.Severity, "error")
}

// IsOn tells whether a management cluster has the notification.
func (n *Notification) IsOn(management string) bool {
	return len(n.ManagementClusters) == 0 || slices.Contains(n.ManagementClusters, management)
}

func (v *validator) notifications(f *Fleet) {
	at := func(i int) string { return itemPath("spec.notifications", i) }
	for i := range f.Spec.Notifications {
		v.notification(at(i), &f.Spec.Notifications[i], f)
	}
	unique(v, f.Spec.Notifications, func(i int) string { return fieldPath(at(i), "name") }, "notification",
		func(n Notification) string { return n.Name })
}

func (v *validator) notification(at string, n *Notification, f *Fleet) {
	v.label(fieldPath(at, "name"), n.Name, maxLabel-len("notification-"))
	if n.Type != "" && !slices.Contains(NotificationTypes(), n.Type) {
		v.errorf(RuleValue, fieldPath(at, "type"), "write slack, teams, webhook, "+ForgeNames(" or "),
			"%.80q is not a type of notification", n.Type)
	}
	if n.Severity != "" && n.Severity != "info" && n.Severity != "error" {
		v.errorf(RuleValue, fieldPath(at, "severity"), "write error or info", "%.80q is not a severity", n.Severity)
	}
	if n.Channel != "" && n.Type != NotifySlack && n.Type != "" {
		v.errorf(RuleValue, fieldPath(at, "channel"), "remove it", "%s has no channel to choose: its webhook has one", n.Type)
	}
	v.label(fieldPath(at, "secret"), n.Secret, maxLabel)
	if n.Address != "" {
		if u, err := url.Parse(n.Address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(n.Address) > 2048 {
			v.errorf(RuleValue, fieldPath(at, "address"), "write https://host/path", "this is not the address of a server")
		} else if u.User != nil {
			v.errorf(RuleValue, fieldPath(at, "address"), "put it into the Secret: `fleetctl notification add` with --secret-file",
				"the address has a credential in it, which Git would show in clear text")
		}
	}
	if n.Type.IsCommitStatus() && n.Address == "" && !v.broken("spec.git") && !strings.Contains(f.Spec.Git.URL, ":") {
		v.errorf(RuleRequired, at, "add `address: https://host/owner/repository`", "the fleet has no remote whose commits could get a status")
	}
	for i, name := range n.Environments {
		v.refersTo(itemPath(fieldPath(at, "environments"), i), "environment", name, f.EnvironmentNames())
	}
	for i, name := range n.ManagementClusters {
		v.refersTo(itemPath(fieldPath(at, "managementClusters"), i), "management cluster", name, f.ManagementClusterNames())
	}
}
