package status

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// soon is how long before its end a credential is reported.
const soon = 24 * time.Hour

// credentials sets when the first credential of a provider ends. It reports no error if the user may not read that, because an expired
// credential also shows in the provider's clusters.
func (c *collector) credentials(ctx context.Context, manager *capi.Manager) {
	held, err := manager.Held(ctx)
	if err != nil {
		return
	}
	for i := range c.report.Providers {
		p := &c.report.Providers[i]
		of := held.Providers[releases.Provider{Name: p.Name, Type: releases.ProviderType(p.Type)}.Label()]
		if of == nil {
			continue
		}
		for _, v := range of.Variables {
			if v.Until != nil && (p.CredentialsUntil == nil || v.Until.Before(*p.CredentialsUntil)) {
				p.CredentialsUntil = v.Until
			}
		}
	}
}

// credentialsText is a warning that a provider's credentials end soon or have ended. It is "" if neither is so. ended means that they
// have ended.
func (i *Item) credentialsText(now time.Time) (text string, ended bool) {
	switch {
	case i.CredentialsUntil == nil || i.CredentialsUntil.After(now.Add(soon)):
		return "", false
	case i.CredentialsUntil.After(now):
		return fmt.Sprintf("its credentials end at %s: %s", i.CredentialsUntil.Format(time.RFC3339), howToRenew), false
	}
	return fmt.Sprintf("its credentials ended at %s", i.CredentialsUntil.Format(time.RFC3339)), true
}

// howToRenew is what to do about credentials that end. Some have to be changed at their source first: `fleetctl credentials` says
// which.
const howToRenew = "`fleetctl credentials` lists them, and says how to renew them"
