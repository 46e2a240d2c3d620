package aws

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// settleTime bounds how long Settle waits. AWS knows a new key everywhere after some seconds.
const settleTime = 30 * time.Second

// Settle waits until AWS knows the access key of the account, which was made only a moment ago. It waits at most settleTime, and returns no
// error: if AWS still does not know the key, the next request tells.
func (a *Account) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		_, err := a.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if code(err) != "InvalidClientTokenId" {
			return
		}
		select {
		case <-time.After(a.pace):
		case <-ctx.Done():
			return
		}
	}
}
