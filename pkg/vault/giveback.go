package vault

import (
	"context"
	"net/http"
)

// LogsIn tells whether the client gets its token by a login of its own.
func (c *Client) LogsIn() bool { return c.config.Method != MethodToken }

// GiveBack has Vault revoke what this client was given: the leases, and the token if the client itself logged in for it. The token of
// the user stays, and so does all that a cache before Vault has given, because others may use it. A client that never logged in sends
// nothing. An error means that what was leased ends only with its own time.
func (c *Client) GiveBack(ctx context.Context, leases ...string) error {
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	if token == "" || c.shared.Load() {
		return nil
	}
	if c.LogsIn() {
		// Vault revokes the leases of a token with the token. Its default policy allows this, and not to revoke a lease.
		err := c.send(ctx, http.MethodPost, "auth/token/revoke-self", token, nil, &answer{})
		return c.explain("give the token of the login back to Vault at "+c.Server(), err)
	}
	for _, lease := range leases {
		err := c.send(ctx, http.MethodPut, "sys/leases/revoke", token, map[string]any{"lease_id": lease}, &answer{})
		if err != nil {
			return c.explain("give a lease back to Vault at "+c.Server(), err)
		}
	}
	return nil
}
