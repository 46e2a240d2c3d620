package status

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// soon is how long before its end a credential is spoken of.
const soon = 24 * time.Hour

// credentials enters when the first of what a provider was given ends. Who may not read that is not told of it: a provider that is let in no more shows
// it by its clusters, too.
func (c *collector) credentials(ctx context.Context, manager *capi.Manager) {
	held, err := manager.Held(ctx)
	if err != nil {
		return
	}
	for i := range c.report.Providers {
		p := &c.report.Providers[i]
		of := held.Providers[capi.Provider{Name: p.Name, Type: capi.ProviderType(p.Type)}.Label()]
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

// credentialsText says of a provider's credentials that they end soon, or have ended; "" of others. ended tells which.
func (i *Item) credentialsText(now time.Time) (text string, ended bool) {
	switch {
	case i.CredentialsUntil == nil || i.CredentialsUntil.After(now.Add(soon)):
		return "", false
	case i.CredentialsUntil.After(now):
		return fmt.Sprintf("its credentials end at %s: `fleetctl credentials`", i.CredentialsUntil.Format(time.RFC3339)), false
	}
	return fmt.Sprintf("its credentials ended at %s", i.CredentialsUntil.Format(time.RFC3339)), true
}
