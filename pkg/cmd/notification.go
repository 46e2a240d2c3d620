package cmd

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/views"
)

var ofNotification = argument{what: "notification", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.NotificationNames() }}

func newNotificationCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "notification", Short: "List, add and remove notifications: messages about Flux, and the status of commits",
		Long: `A notification tells people what Flux on the management clusters does, or fails to do: in Slack, in Teams, or by a webhook.
Or it marks each commit at the forge as applied or failed. fleet.yaml lists the notifications, and Flux's notification-controller sends
them.`,
	}
	c.AddCommand(newNotificationAddCmd(f), newNotificationListCmd(f), newNotificationRemoveCmd(f))
	return c
}

// notificationAddOptions are the flags of notification add.
type notificationAddOptions struct {
	changeFlags
	notification v1alpha1.Notification
	secretFile   string
	// secret is the content of the Secret to make; nil if none is made.
	secret []byte
	dir    string
}

// complete reads the secret.
func (o *notificationAddOptions) complete(f *factory, args ...string) (err error) {
	n := &o.notification
	n.Name = args[0]
	switch {
	case n.Type == "":
		return diag.Usage("give --type "+notificationTypes(), "the type of the notification is missing")
	case !slices.Contains(v1alpha1.NotificationTypes(), n.Type):
		return diag.Usage(nearestType(n.Type), "--type: %.80q is not a type of notification", string(n.Type))
	case o.secretFile != "" && n.Secret != "":
		return diag.Usage("leave one of them out", "--secret-file makes a Secret, and --secret names one that is made otherwise")
	case o.secretFile == "" && n.Secret == "" && (n.Address == "" || n.Type.IsCommitStatus()):
		return diag.Usage("give --secret-file, or --secret for one that is made otherwise", "a notification of type %s needs a secret: %s",
			string(n.Type), neededSecret(n.Type))
	}
	if o.secretFile != "" {
		read, err := readInput(f, o.secretFile, "the secret of the notification", "--secret-file")
		if err != nil {
			return err
		}
		if o.secret = bytes.TrimSpace(read); len(o.secret) == 0 {
			return diag.Usage("put "+neededSecret(n.Type)+" into it", "the secret of the notification is empty")
		}
		if err := checkSecret(n.Type, string(o.secret)); err != nil {
			return err
		}
	}
	o.dir, err = f.repoDir()
	return err
}

func runNotificationAdd(ctx context.Context, f *factory, o *notificationAddOptions) error {
	add, err := fleetsecrets.AddNotification(o.dir, o.notification, o.secret)
	if err != nil {
		return err
	}
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: add})
}

func newNotificationAddCmd(f *factory) *cobra.Command {
	o := &notificationAddOptions{}
	n := &o.notification
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a notification, with its Secret encrypted",
		Long: `Add a notification to fleet.yaml, and the Provider and the Alert of Flux that it consists of to the management clusters.

The webhook address of Slack or Teams is a secret, and so is the token that sets the status of commits. --secret-file
reads the secret from a file or from standard input, and puts it encrypted into the fleet repo. --secret names a
Secret of flux-system that the fleet repo has already.` + editing,
		Example: `  pass show slack/ops | fleetctl notification add ops --type slack --secret-file - --push
  fleetctl notification add deployments --type teams --environment production --severity info --secret-file teams.txt
  fleetctl notification add commits --type github --secret-file token.txt --push
  fleetctl notification add audit --type webhook --address https://audit.example.com/flux`,
		RunE: running(f, o, runNotificationAdd),
	}
	fs := c.Flags()
	fs.StringVar((*string)(&n.Type), "type", "",
		"where it goes: slack, teams or webhook for messages; "+v1alpha1.ForgeNames(" or ")+" for the status of commits (required)")
	fs.StringVar(&n.Address, "address", "",
		"address of a webhook that is no secret, or of the repository whose commits get a status (default: spec.git.url)")
	fs.StringVar(&n.Channel, "channel", "", "channel of Slack (default: the webhook's channel)")
	fs.StringVar(&n.Severity, "severity", "", "error for failures alone, or info for all that happens (default: error; info for commits)")
	fs.StringVar(&o.secretFile, "secret-file", "", "file with the address of the webhook, or with the token; - is standard input")
	fs.StringVar(&n.Secret, "secret", "", "Secret in flux-system with the address or the token, if you make it yourself")
	fs.StringSliceVar(&n.Environments, "environment", nil, "environment to report on (default: everything on the management clusters)")
	fs.StringSliceVar(&n.ManagementClusters, "on-management", nil, "management cluster that sends the messages (default: all)")
	var types []string
	for _, t := range v1alpha1.NotificationTypes() {
		types = append(types, string(t))
	}
	completeFlag(c, "type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "severity", cobra.FixedCompletions([]string{"error", "info"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	completeFlag(c, "on-management", f.completeFrom(-1, ofManagement.choices))
	o.add(c)
	takes(f, c, argument{what: "notification"})
	return c
}

// notificationTypes lists all types in a sentence.
func notificationTypes() string {
	types := v1alpha1.NotificationTypes()
	words := make([]string, 0, len(types))
	for _, t := range types {
		words = append(words, string(t))
	}
	return strings.Join(words, ", ")
}

// nearestType is the hint for a type that is none.
func nearestType(t v1alpha1.NotificationType) string {
	hint := "the types are " + notificationTypes()
	if near := diag.Nearest(string(t), strings.Split(notificationTypes(), ", ")); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return hint
}

// neededSecret describes the content of a notification's Secret.
func neededSecret(t v1alpha1.NotificationType) string {
	if t.IsCommitStatus() {
		return "the token that sets the status of commits"
	}
	return "the address of the webhook"
}

// checkSecret returns an error for a secret with which Flux could send nothing: nobody sees that in the encrypted file. The error does not
// show the secret.
func checkSecret(t v1alpha1.NotificationType, secret string) error {
	what := ""
	if u, err := url.Parse(secret); t.IsCommitStatus() {
		if strings.ContainsFunc(secret, unicode.IsSpace) || strings.Contains(secret, "://") {
			what = "is no token: a token is one word"
		}
	} else if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsFunc(secret, unicode.IsSpace) {
		what = "is no address of a server, such as https://host/path"
	}
	if what == "" {
		return nil
	}
	return diag.Usage("put "+neededSecret(t)+", and nothing else, into it", "the secret of the notification %s", what)
}

func newNotificationRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a notification",
		Long:    "Remove a notification from fleet.yaml, with its objects and the Secret that was made for it." + editing,
		Example: "  fleetctl notification remove ops --push",
	}, ofNotification, (*fleetrepo.Repo).RemoveNotification)
}

func newNotificationListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "notification", "List the notifications that fleet.yaml declares",
		(*fleetrepo.Repo).Notifications, views.Notifications)
}
