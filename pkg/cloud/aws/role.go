package aws

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Role is a role in an account of AWS, which other credentials may take on.
type Role struct {
	ARN string
	// ExternalID is what the trust policy of the role asks for; "" for nothing.
	ExternalID string
	// SessionName is the name of the session in AWS's logs, which the trust policy may ask for, too.
	SessionName string
}

var roleARN = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):role/[A-Za-z0-9+=,.@_/-]+$`)

// Account returns the number of the account that has the role, or "" if the ARN is not one of a role.
func (r Role) Account() string {
	if parts := roleARN.FindStringSubmatch(r.ARN); parts != nil {
		return parts[1]
	}
	return ""
}

// Identify asks AWS for the number of the account. AWS tells it to all valid credentials.
func (a *Account) Identify(ctx context.Context) error {
	out, err := a.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return diag.Wrap("ask for the number of the account", short(err), hint(err))
	}
	a.number = sdk.ToString(out.Account)
	return nil
}

// Assume returns the account of a role, with the regions of a. It takes on the role with the credentials of a, and again whenever the
// session is about to end.
func (a *Account) Assume(ctx context.Context, role Role) (*Account, error) {
	number := role.Account()
	if number == "" {
		return nil, diag.Errorf("an ARN is such as arn:aws:iam::111122223333:role/NAME", "%.120q is not the ARN of a role", role.ARN)
	}
	in := &sts.AssumeRoleInput{RoleArn: &role.ARN, RoleSessionName: sdk.String(cmp.Or(role.SessionName, "fleetctl"))}
	if role.ExternalID != "" {
		in.ExternalId = &role.ExternalID
	}
	assumed := *a
	assumed.number, assumed.keyID = number, ""
	assumed.credentials = sdk.NewCredentialsCache(sdk.CredentialsProviderFunc(func(ctx context.Context) (sdk.Credentials, error) {
		out, err := a.sts().AssumeRole(ctx, in)
		if err != nil {
			return sdk.Credentials{}, diag.Wrap("assume the role "+role.ARN, short(err), hint(err))
		}
		if out.Credentials == nil {
			return sdk.Credentials{}, fmt.Errorf("assume the role %s: AWS gave no credentials", role.ARN)
		}
		return sdk.Credentials{
			AccessKeyID: sdk.ToString(out.Credentials.AccessKeyId), SecretAccessKey: sdk.ToString(out.Credentials.SecretAccessKey),
			SessionToken: sdk.ToString(out.Credentials.SessionToken), CanExpire: true, Expires: sdk.ToTime(out.Credentials.Expiration),
		}, nil
	}), func(o *sdk.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow })
	if _, err := assumed.credentials.Retrieve(ctx); err != nil {
		return nil, err
	}
	return &assumed, nil
}

// expiryWindow is how long before its end a session is replaced.
const expiryWindow = 5 * time.Minute

// sts returns the client of the service that knows accounts and roles.
func (a *Account) sts() *sts.Client {
	region := a.region
	if region == "" && len(a.regions) > 0 {
		region = a.regions[0]
	}
	return sts.NewFromConfig(a.config(cmp.Or(region, home)))
}
