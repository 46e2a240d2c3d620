package aws

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// mostTagged is the maximum number of load balancers in one request for tags.
const mostTagged = 20

func (r *region) loadBalancers(ctx context.Context, c *collector) error {
	return c.tagged(kindLoadBalancer, func(marker *string, found func(*string, cloud.Resource)) (*string, error) {
		out, err := r.elbv2.DescribeLoadBalancers(ctx, &elbv2.DescribeLoadBalancersInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, b := range out.LoadBalancers {
			found(b.LoadBalancerArn, cloud.Resource{Network: sdk.ToString(b.VpcId), Created: b.CreatedTime})
		}
		return out.NextMarker, nil
	}, r.tagsByARN(ctx))
}

func (r *region) targetGroups(ctx context.Context, c *collector) error {
	return c.tagged(kindTargetGroup, func(marker *string, found func(*string, cloud.Resource)) (*string, error) {
		out, err := r.elbv2.DescribeTargetGroups(ctx, &elbv2.DescribeTargetGroupsInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, g := range out.TargetGroups {
			found(g.TargetGroupArn, cloud.Resource{Network: sdk.ToString(g.VpcId)})
		}
		return out.NextMarker, nil
	}, r.tagsByARN(ctx))
}

func (r *region) classicBalancers(ctx context.Context, c *collector) error {
	return c.tagged(kindClassicBalancer, func(marker *string, found func(*string, cloud.Resource)) (*string, error) {
		out, err := r.elb.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, b := range out.LoadBalancerDescriptions {
			found(b.LoadBalancerName, cloud.Resource{Network: sdk.ToString(b.VPCId), Created: b.CreatedTime})
		}
		return out.NextMarker, nil
	}, r.tagsOfClassic(ctx))
}

// tagsByARN returns a function that requests the tags of load balancers or target groups.
func (r *region) tagsByARN(ctx context.Context) func(some []string, each tagFunc) error {
	return func(some []string, each tagFunc) error {
		out, err := r.elbv2.DescribeTags(ctx, &elbv2.DescribeTagsInput{ResourceArns: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			each(d.ResourceArn, pairs(d.Tags, func(t elbv2types.Tag) (key, value *string) { return t.Key, t.Value }))
		}
		return nil
	}
}

// tagsOfClassic returns a function that requests the tags of classic load balancers.
func (r *region) tagsOfClassic(ctx context.Context) func(some []string, each tagFunc) error {
	return func(some []string, each tagFunc) error {
		out, err := r.elb.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			each(d.LoadBalancerName, pairs(d.Tags, func(t elbtypes.Tag) (key, value *string) { return t.Key, t.Value }))
		}
		return nil
	}
}

// tagFunc is called with the tags of a resource.
type tagFunc func(id *string, tags map[string]string)

// tagged collects resources whose tags need a separate request. page calls found for each resource of one page. tags requests the tags of
// some resources.
func (c *collector) tagged(
	kind string, page func(marker *string, found func(id *string, r cloud.Resource)) (next *string, err error),
	tags func(some []string, each tagFunc) error,
) error {
	all := map[string]cloud.Resource{}
	err := pages(func(marker *string) (*string, error) {
		return page(marker, func(id *string, r cloud.Resource) { all[sdk.ToString(id)] = r })
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(sortedKeys(all), mostTagged) {
		err := tags(some, func(id *string, tags map[string]string) { c.add(kind, sdk.ToString(id), tags, all[sdk.ToString(id)]) })
		if err != nil {
			return err
		}
	}
	return nil
}
