package vault

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// ErrNoLease is the error of LeaseEnd about a lease that Vault does not have any more: it has ended, or somebody has revoked it.
var ErrNoLease = errors.New("the lease has ended")

// LeaseEnd asks Vault when a lease ends, and whether the end can be put off. The end is a time of this machine's clock, whatever the clock
// of the machine that got the lease says. It is ErrNoLease where Vault has no such lease.
func (c *Client) LeaseEnd(ctx context.Context, lease string) (until time.Time, renewable bool, _ error) {
	const op = "look up a lease of Vault at "
	begin := time.Now()
	var got answer
	err := c.call(ctx, http.MethodPut, "sys/leases/lookup", map[string]any{"lease_id": lease}, &got)
	if said, is := errors.AsType[*Error](err); is && (said.Status == http.StatusBadRequest || said.Status == http.StatusNotFound) {
		return time.Time{}, false, ErrNoLease
	}
	if err != nil {
		return time.Time{}, false, c.explain(op+c.Server(), err)
	}
	var about struct {
		TTL       *int64 `json:"ttl"`
		Renewable bool   `json:"renewable"`
	}
	if json.Unmarshal(got.Data, &about) != nil || about.TTL == nil {
		return time.Time{}, false, c.explain(op+c.Server(), errors.New("the answer does not say when it ends"))
	}
	return begin.Add(seconds(*about.TTL)).UTC().Truncate(time.Second), about.Renewable, nil
}
