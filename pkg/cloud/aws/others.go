package aws

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// tagKey matches the keys that the tagging API takes. EC2 takes others, too, and no other service has a resource with such a tag: so any
// user of the account could give an instance a tag that this API does not search for, and the region would never be searched to its end.
var tagKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}$`) })

// others lists the resources of other services with the tag of the fleet or of one of the clusters. The tagging API can only search for
// whole tags. It also lists EC2 and load balancers, but later than these services themselves, so others skips them.
func (r *region) others(ctx context.Context, c *collector, fleet string, clusters []string) error {
	names := map[string]bool{}
	for _, name := range clusters {
		names[name] = true
	}
	for _, resource := range c.resources {
		names[resource.Cluster] = true
	}
	var filters []types.TagFilter
	if fleet != "" {
		filters = append(filters, types.TagFilter{Key: sdk.String(v1alpha1.FleetTag), Values: []string{fleet}})
	}
	for _, name := range sortedKeys(names) {
		for _, prefix := range []string{providerTag, kubernetesTag} {
			if key := prefix + name; tagKey().MatchString(key) {
				filters = append(filters, types.TagFilter{Key: &key, Values: []string{owned}})
			}
		}
	}
	seen := map[string]bool{}
	for _, filter := range filters {
		err := pages(func(token *string) (*string, error) {
			out, err := r.tags.GetResources(ctx, &tagging.GetResourcesInput{TagFilters: []types.TagFilter{filter}, PaginationToken: token})
			if err != nil {
				return nil, err
			}
			for _, m := range out.ResourceTagMappingList {
				if arn := sdk.ToString(m.ResourceARN); !seen[arn] {
					seen[arn] = true
					tags := map[string]string{}
					for _, t := range m.Tags {
						tags[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
					}
					c.addOther(arn, tags)
				}
			}
			return out.PaginationToken, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addOther records the resource with an ARN of the form arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE.
func (c *collector) addOther(arn string, tags map[string]string) {
	const service, resource, fields = 2, 5, 6
	parts := strings.SplitN(arn, ":", fields)
	if len(parts) < fields || parts[service] == "ec2" || parts[service] == "elasticloadbalancing" {
		return
	}
	kind, _, _ := strings.Cut(strings.ReplaceAll(parts[resource], ":", "/"), "/")
	switch what := parts[service] + "/" + kind; what {
	case "secretsmanager/secret":
		c.add(kindSecret, arn, tags, cloud.Resource{})
	case "eks/cluster":
		c.add(kindManaged, arn, tags, cloud.Resource{})
	case "eks/nodegroup":
		c.add(kindNodeGroup, arn, tags, cloud.Resource{})
	default:
		c.add(parts[service]+"-"+kind, arn, tags, cloud.Resource{})
	}
}
