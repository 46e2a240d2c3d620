package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// supportBundleOptions are the flags of support-bundle.
type supportBundleOptions struct {
	asGiven
	file    string
	timeout time.Duration
}

func newSupportBundleCmd(f *factory) *cobra.Command {
	o := &supportBundleOptions{}
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Gather objects, events, logs and versions in one file, without secrets",
		Long: `Gather everything that helps to find a fault without access to the management cluster. The bundle holds all objects with
their conditions, the events, the logs of the host's programs or of the provider and Flux pods, versions, and the output of "fleetctl
status" and "fleetctl why".

The values of Secrets are removed everywhere in the bundle, and so is text that looks like a secret: values under names such as password or
token, private keys, kubeconfigs, tokens in URLs. Still, look through the bundle before you give it to somebody. Only you can read the file
(mode 0600). Without --file it is in the state folder, where no commit includes it. The bundle's README.txt names everything that could not
be read, for example because the API server did not answer. When "fleetctl bootstrap" fails, it gathers a bundle too.`,
		Example: `  fleetctl support-bundle
  fleetctl support-bundle --file /tmp/mgmt.tar.gz --management mgmt`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runSupportBundle),
	}
	f.addManagement(c)
	f.addReach(c)
	c.Flags().StringVarP(&o.file, "file", "f", "", "file to write (default: support-bundles/NAME-TIME.tar.gz in the state folder)")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "leave out everything that does not answer within this time")
	return c
}

func runSupportBundle(ctx context.Context, f *factory, o *supportBundleOptions) error {
	target, err := f.declaredTarget()
	if err != nil {
		return err
	}
	file := o.file
	if file == "" {
		if file, err = f.store().SupportBundle(target.Name, time.Now()); err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	step := f.report().Start("gather the support bundle")
	result, err := management.SupportBundle(bounded, target, file, "", step.Detail)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	f.closeReporter()
	return f.show(views.SupportBundle(result))
}
