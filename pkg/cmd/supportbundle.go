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
		Long: `Gather what somebody needs who is to find out what is wrong and cannot look at the management cluster: all objects and their conditions, the
events, the logs of the host's programs or of the pods of the providers and Flux, versions, and what "fleetctl status" and "fleetctl why" say.

What Secrets hold is taken out, wherever else it stands, and so is what looks like a secret: values under names such as password or token, private keys,
kubeconfigs, tokens in URLs. Look through it all the same before you give it to somebody. The file is for you alone to read (mode 0600), and without --file it
is in the state folder, where no commit takes it along. What cannot be read, as where the API server does not answer, is named in its README.txt.
"fleetctl bootstrap" gathers one by itself when it fails.`,
		Example: `  fleetctl support-bundle
  fleetctl support-bundle --file /tmp/mgmt.tar.gz --management mgmt`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runSupportBundle),
	}
	f.addManagement(c)
	c.Flags().StringVarP(&o.file, "file", "f", "", "file to write (default: support-bundles/NAME-TIME.tar.gz in the state folder)")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "leave out what does not answer within this time")
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
