package scaffold

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// NotificationOptions declare a notification on one management cluster.
type NotificationOptions struct {
	v1alpha1.Notification
	// Fleet and ManagementCluster are named in each message.
	Fleet, ManagementCluster string
	Layout                   layout.Layout
	// GitURL is the fleet repo, whose commits get a status.
	GitURL string
	// Further are the names of the Kustomizations that apply the management cluster's environments in clouds other than its home.
	Further []string
	// Sources are the names of the GitRepositories of the channels that the management cluster's environments follow.
	Sources []string
}

// NotificationFile returns the path of the file of a notification on a management cluster.
func NotificationFile(l layout.Layout, name string) string {
	return path.Join(l.Management(), "notifications", name+".yaml")
}

// NotificationSecretFile returns the path of the file with the encrypted Secret of a notification.
func NotificationSecretFile(l layout.Layout, name string) string {
	return path.Join(l.Management(), "notifications", name+".sops.yaml")
}

// NotificationSecret returns the default name of a notification's Secret.
func NotificationSecret(name string) string { return "notification-" + name }

// eventSource names Flux objects whose events are reported.
type eventSource struct{ Kind, Name string }

// Notification returns the file with the Provider and the Alert of a notification. Errors: a bad name, and for commit statuses an address
// that is not a repository at a forge.
func Notification(o NotificationOptions) (manifest.File, error) {
	if err := CheckName("notification", o.Name, 50); err != nil {
		return manifest.File{}, err
	}
	data := struct {
		Name, Type, Provider, Address, Channel, Secret, Severity, What, Fleet, ManagementCluster string
		Metadata                                                                                 bool
		Sources                                                                                  []eventSource
	}{
		Name: o.Name, Type: string(o.Type), Provider: provider(o.Type), Channel: quoted(o.Channel), Secret: o.Secret,
		Severity: o.Level(), What: "what fails",
		Fleet: strconv.Quote(o.Fleet), ManagementCluster: strconv.Quote(o.ManagementCluster),
		Metadata: !o.Type.IsCommitStatus(), Sources: o.events(),
	}
	address := o.Address
	if o.Type.IsCommitStatus() {
		data.What = "whether Flux has applied a commit"
		if address == "" {
			var err error
			if address, err = webAddress(o.GitURL); err != nil {
				return manifest.File{}, err
			}
		}
	} else if data.Severity == "info" {
		data.What = "all events"
	}
	data.Address = quoted(address)
	content, err := execute("notification.yaml", data)
	return manifest.File{Path: NotificationFile(o.Layout, o.Name), Content: content}, err
}

// provider returns Flux's name of a type of notification. For Slack and for the forges, fleetctl and Flux use the same name.
func provider(t v1alpha1.NotificationType) string {
	switch t {
	case v1alpha1.NotifyTeams:
		return "msteams"
	case v1alpha1.NotifyWebhook:
		return "generic"
	default:
		return string(t)
	}
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}

// events returns the Flux objects whose events Flux reports. For commit statuses these are only Kustomizations, because only they apply
// commits.
func (o NotificationOptions) events() []eventSource {
	all := []eventSource{{Kind: "Kustomization", Name: "'*'"}}
	if len(o.Environments) > 0 {
		all = nil
		for _, env := range o.Environments {
			all = append(all, eventSource{Kind: "Kustomization", Name: o.Layout.ClustersName(env)})
		}
		for _, name := range o.Further {
			all = append(all, eventSource{Kind: "Kustomization", Name: name})
		}
	}
	if o.Type.IsCommitStatus() {
		return all
	}
	if len(o.Environments) == 0 {
		all = append(all, eventSource{Kind: "HelmRelease", Name: "'*'"})
		for _, kind := range []string{"GitRepository", "HelmRepository", "OCIRepository", "HelmChart"} {
			all = append(all, eventSource{Kind: kind, Name: "'*'"})
		}
	}
	for _, source := range slices.Compact(slices.Sorted(slices.Values(o.Sources))) {
		all = append(all, eventSource{Kind: "GitRepository", Name: source})
	}
	return all
}

// webAddress returns the https URL of a repository at its forge, which commit statuses need.
func webAddress(git string) (string, error) {
	u, err := v1alpha1.Git{URL: git}.ParseURL()
	if err != nil || u.Scheme != "https" && u.Scheme != "ssh" {
		return "", diag.Usage("give --address https://host/owner/repository", "the fleet repo has no address at a forge: %q", git)
	}
	web := url.URL{Scheme: "https", Host: u.Host, Path: strings.TrimSuffix(u.Path, ".git")}
	if u.Scheme == "ssh" {
		web.Host = u.Hostname()
	}
	return web.String(), nil
}
