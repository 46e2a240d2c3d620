// Package aws lists and deletes the resources of a fleet's clusters in Amazon Web Services.
package aws

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// CredentialsVariable is the provider's variable with the credentials: a profile in the format of AWS's own tools, in base64.
const CredentialsVariable = "AWS_B64ENCODED_CREDENTIALS" //nolint:gosec // the name of a variable

// EndpointVariable has the URL of another server with AWS's API, as for AWS's own tools.
const EndpointVariable = "AWS_ENDPOINT_URL"

// home is the region whose server lists all regions if the profile names no region.
const home = "us-east-1"

// Account is an account of AWS.
type Account struct {
	credentials sdk.CredentialsProvider
	// keyID is the access key of the credentials, or "" for a role.
	keyID string
	// number of the account; "" if it is not known.
	number string
	// region is the profile's region, or "".
	region   string
	regions  []string
	endpoint *string
	client   *http.Client
	// pace is the pause before Delete asks again whether a resource is gone.
	pace time.Duration
	// slots has room for the requests of deletions at once.
	slots chan struct{}
}

var _ cloud.Account = (*Account)(nil)

// maxAnswer and mostPages are variables, so that tests need not send that much.
var (
	maxAnswer = cloud.MaxAnswer
	mostPages = cloud.MostPages
)

// New returns the account for the credentials in encoded, the value of CredentialsVariable. Find searches the given regions, or every
// region of the account if there are none. No error contains a part of the value.
func New(encoded, endpoint string, regions []string) (*Account, error) {
	const hint = "make it with `clusterawsadm bootstrap credentials encode-as-profile`"
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return nil, diag.Errorf(hint, "the value of %s is not base64", CredentialsVariable)
	}
	profile := parseProfile(string(raw))
	keys := sdk.Credentials{
		AccessKeyID: profile["aws_access_key_id"], SecretAccessKey: profile["aws_secret_access_key"], SessionToken: profile["aws_session_token"],
		Source: CredentialsVariable,
	}
	if !keys.HasKeys() {
		return nil, diag.Errorf(hint, "the profile in %s has no aws_access_key_id and aws_secret_access_key", CredentialsVariable)
	}
	return open(keys, profile["region"], endpoint, regions), nil
}

// Key is an access key. Token is "" for a key that does not end.
type Key struct{ ID, Secret, Token string }

// WithKey returns the account of an access key that is not the provider's own. Region is the region that lists the others, or "". The rest
// is as in New.
func WithKey(key Key, region, endpoint string, regions []string) *Account {
	return open(sdk.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}, region, endpoint, regions)
}

func open(keys sdk.Credentials, region, endpoint string, regions []string) *Account {
	a := &Account{
		region: region, regions: regions, pace: 5 * time.Second, keyID: keys.AccessKeyID, slots: make(chan struct{}, cloud.AtOnce),
		credentials: sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) { return keys, nil }),
	}
	// AWS does not redirect to other servers. The SDK's own client would follow a redirect with signature, token and body, even from https to
	// http.
	a.client = &http.Client{
		Transport: answers{
			contact.Bound(sameorigin.Screen(contact.Transport(awshttp.NewBuildableClient().GetTransport())), maxAnswer),
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if endpoint != "" {
		a.endpoint = &endpoint
	}
	return a
}

// parseProfile returns the values of the first profile in a file of AWS's tools.
func parseProfile(text string) map[string]string {
	values, sections := map[string]string{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			if sections++; sections > 1 {
				break
			}
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		values[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return values
}

// Key identifies the account, or its credentials if the number of the account is not known. It is not secret.
func (a *Account) Key() string { return cmp.Or(a.number, a.keyID) }

// Region returns the region in the profile of the credentials, or "".
func (a *Account) Region() string { return a.region }

// Cloud returns the name of the provider.
func (a *Account) Cloud() string { return "aws" }

// Find searches the regions, several at once.
func (a *Account) Find(ctx context.Context, fleet string, clusters []string) cloud.Found {
	regions, err := a.allRegions(ctx)
	found := cloud.Found{Account: a.number, Regions: regions}
	if err != nil {
		problem := cloud.Problem{Text: fmt.Sprintf("list the regions of the account: %v", short(err)), Hint: hint(err)}
		if problem.Hint == "" || isDenied(err) {
			problem.Hint = "name the regions with --region, or allow ec2:DescribeRegions"
		}
		found.Problems = append(found.Problems, problem)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, 6)
	for _, name := range regions {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := a.in(name).find(ctx, fleet, clusters)
			mu.Lock()
			defer mu.Unlock()
			found.Resources = append(found.Resources, c.resources...)
			found.Strangers = append(found.Strangers, c.strangers...)
			found.Problems = append(found.Problems, c.problems...)
		})
	}
	all.Wait()
	slices.SortFunc(found.Resources, func(x, y cloud.Resource) int {
		return cmp.Or(cmp.Compare(x.Region, y.Region), cmp.Compare(rank(x.Kind), rank(y.Kind)), cmp.Compare(x.ID, y.ID))
	})
	slices.SortFunc(found.Problems, func(x, y cloud.Problem) int {
		return cmp.Or(cmp.Compare(x.Region, y.Region), cmp.Compare(x.Text, y.Text))
	})
	return found
}

// allRegions returns the regions to search. If the regions cannot be listed, it returns the profile's region, if there is one, and the
// error.
func (a *Account) allRegions(ctx context.Context) ([]string, error) {
	if len(a.regions) > 0 {
		return a.regions, nil
	}
	out, err := a.in(cmp.Or(a.region, home)).ec2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err == nil && len(out.Regions) == 0 {
		err = errors.New("the answer names none")
	}
	if err != nil {
		if a.region == "" {
			return nil, err
		}
		return []string{a.region}, err
	}
	var names []string
	for _, r := range out.Regions {
		names = append(names, sdk.ToString(r.RegionName))
	}
	slices.Sort(names)
	return names, nil
}

// region is one region of an account. Do not store the clients in an interface: the linker would keep all methods of a client, and EC2 has
// 700.
type region struct {
	name    string
	ec2     *ec2.Client
	elb     *elb.Client
	elbv2   *elbv2.Client
	eks     *eks.Client
	secrets *secretsmanager.Client
	tags    *tagging.Client
}

func (a *Account) config(region string) sdk.Config {
	return sdk.Config{Region: region, BaseEndpoint: a.endpoint, HTTPClient: a.client, Credentials: a.credentials}
}

func (a *Account) in(name string) *region {
	config := a.config(name)
	return &region{
		name: name, ec2: ec2.NewFromConfig(config), elb: elb.NewFromConfig(config), elbv2: elbv2.NewFromConfig(config),
		eks:     eks.NewFromConfig(config),
		secrets: secretsmanager.NewFromConfig(config), tags: tagging.NewFromConfig(config),
	}
}
