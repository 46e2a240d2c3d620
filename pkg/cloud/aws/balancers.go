package aws

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// mostTagged is how many load balancers can be asked for their tags at once.
const mostTagged = 20

func (r *region) loadBalancers(ctx context.Context, c *collector) error {
	all := map[string]cloud.Resource{}
	err := pages(func(marker *string) (*string, error) {
		out, err := r.elbv2.DescribeLoadBalancers(ctx, &elbv2.DescribeLoadBalancersInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, b := range out.LoadBalancers {
			all[sdk.ToString(b.LoadBalancerArn)] = cloud.Resource{Network: sdk.ToString(b.VpcId), Created: b.CreatedTime}
		}
		return out.NextMarker, nil
	})
	if err != nil {
		return err
	}
	return r.addTagged(ctx, c, kindLoadBalancer, all)
}

func (r *region) targetGroups(ctx context.Context, c *collector) error {
	all := map[string]cloud.Resource{}
	err := pages(func(marker *string) (*string, error) {
		out, err := r.elbv2.DescribeTargetGroups(ctx, &elbv2.DescribeTargetGroupsInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, g := range out.TargetGroups {
			all[sdk.ToString(g.TargetGroupArn)] = cloud.Resource{Network: sdk.ToString(g.VpcId)}
		}
		return out.NextMarker, nil
	})
	if err != nil {
		return err
	}
	return r.addTagged(ctx, c, kindTargetGroup, all)
}

// addTagged asks for the tags of load balancers or target groups, which come by themselves.
func (r *region) addTagged(ctx context.Context, c *collector, kind string, all map[string]cloud.Resource) error {
	for some := range slices.Chunk(sortedKeys(all), mostTagged) {
		out, err := r.elbv2.DescribeTags(ctx, &elbv2.DescribeTagsInput{ResourceArns: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			tags := map[string]string{}
			for _, t := range d.Tags {
				tags[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
			}
			c.add(kind, sdk.ToString(d.ResourceArn), tags, all[sdk.ToString(d.ResourceArn)])
		}
	}
	return nil
}

func (r *region) classicBalancers(ctx context.Context, c *collector) error {
	all := map[string]cloud.Resource{}
	err := pages(func(marker *string) (*string, error) {
		out, err := r.elb.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{Marker: marker})
		if err != nil {
			return nil, err
		}
		for _, b := range out.LoadBalancerDescriptions {
			all[sdk.ToString(b.LoadBalancerName)] = cloud.Resource{Network: sdk.ToString(b.VPCId), Created: b.CreatedTime}
		}
		return out.NextMarker, nil
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(sortedKeys(all), mostTagged) {
		out, err := r.elb.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			tags := map[string]string{}
			for _, t := range d.Tags {
				tags[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
			}
			c.add(kindClassicBalancer, sdk.ToString(d.LoadBalancerName), tags, all[sdk.ToString(d.LoadBalancerName)])
		}
	}
	return nil
}
