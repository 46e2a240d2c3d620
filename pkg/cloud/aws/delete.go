package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// goneTimeout bounds the deletion of one resource. A NAT gateway takes minutes, an EKS cluster a quarter of an hour.
const goneTimeout = 20 * time.Minute

// removal describes how AWS deletes a kind of resource.
type removal struct {
	// remove deletes the resource. It may be called again.
	remove func(r *region, ctx context.Context, id string) error
	// present tells whether the resource still exists. It is nil for kinds that AWS deletes before it answers.
	present func(r *region, ctx context.Context, id string) (bool, error)
}

var removals = map[string]removal{
	kindNodeGroup:       {remove: (*region).deleteNodeGroup, present: (*region).hasNodeGroup},
	kindManaged:         {remove: (*region).deleteManaged, present: (*region).hasManaged},
	kindInstance:        {remove: (*region).terminate, present: (*region).hasInstance},
	kindLoadBalancer:    {remove: (*region).deleteLoadBalancer, present: (*region).hasLoadBalancer},
	kindClassicBalancer: {remove: (*region).deleteClassicBalancer},
	kindEndpoint:        {remove: (*region).deleteEndpoint, present: (*region).hasEndpoint},
	kindNATGateway:      {remove: (*region).deleteNATGateway, present: (*region).hasNATGateway},
	kindTargetGroup:     {remove: (*region).deleteTargetGroup},
	kindAddress:         {remove: (*region).releaseAddress},
	kindInterface:       {remove: (*region).deleteInterface},
	kindVolume:          {remove: (*region).deleteVolume},
	kindSecurityGroup:   {remove: (*region).deleteSecurityGroup},
	kindRouteTable:      {remove: (*region).deleteRouteTable},
	kindInternetGateway: {remove: (*region).deleteGateway},
	kindEgressGateway:   {remove: (*region).deleteEgressGateway},
	kindSubnet:          {remove: (*region).deleteSubnet},
	kindVPC:             {remove: (*region).deleteVPC},
	kindTemplate:        {remove: (*region).deleteTemplate},
	kindSecret:          {remove: (*region).deleteSecret},
}

// Stages returns one list for each kind, in the order of deletion.
func (a *Account) Stages(resources []cloud.Resource) [][]cloud.Resource {
	return cloud.ByKind(resources, order)
}

// Delete deletes one resource and waits until it is gone. While other resources use it, Delete tries again: AWS releases a resource some
// time after its users are gone.
func (a *Account) Delete(ctx context.Context, resource cloud.Resource) error {
	how, ok := removals[resource.Kind]
	if !ok {
		return fmt.Errorf("no command deletes a resource of kind %s", resource.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	r := a.in(resource.Region)
	for removed := false; ; {
		var err error
		there := false
		a.slots <- struct{}{} // only for the requests: what waits for another resource must not keep that one from being deleted
		if !removed {
			err = how.remove(r, ctx, resource.ID)
			removed = err == nil
		}
		if removed && how.present != nil {
			there, err = how.present(r, ctx, resource.ID)
		}
		<-a.slots
		switch {
		case isGone(err), err == nil && !there:
			return nil
		case err != nil && !isInUse(err) && !isThrottled(err):
			return diag.Wrap("", short(err), hint(err))
		}
		select {
		case <-time.After(a.pace):
		case <-ctx.Done():
			if err != nil && isThrottled(err) {
				return diag.Wrap("", short(err), hint(err))
			}
			if err != nil {
				return fmt.Errorf("other resources still use it: %w", short(err))
			}
			return fmt.Errorf("AWS has accepted the deletion, but the resource still exists: %w", ctx.Err())
		}
	}
}

func (r *region) terminate(ctx context.Context, id string) error {
	_, err := r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	return err
}

func (r *region) hasInstance(ctx context.Context, id string) (bool, error) {
	out, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return true, err
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			if i.State == nil || i.State.Name != types.InstanceStateNameTerminated {
				return true, nil
			}
		}
	}
	return false, nil
}

func (r *region) deleteLoadBalancer(ctx context.Context, id string) error {
	_, err := r.elbv2.DeleteLoadBalancer(ctx, &elbv2.DeleteLoadBalancerInput{LoadBalancerArn: &id})
	return err
}

func (r *region) hasLoadBalancer(ctx context.Context, id string) (bool, error) {
	out, err := r.elbv2.DescribeLoadBalancers(ctx, &elbv2.DescribeLoadBalancersInput{LoadBalancerArns: []string{id}})
	return err != nil || len(out.LoadBalancers) > 0, err
}

func (r *region) deleteClassicBalancer(ctx context.Context, id string) error {
	_, err := r.elb.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &id})
	return err
}

func (r *region) deleteTargetGroup(ctx context.Context, id string) error {
	_, err := r.elbv2.DeleteTargetGroup(ctx, &elbv2.DeleteTargetGroupInput{TargetGroupArn: &id})
	return err
}

func (r *region) deleteEndpoint(ctx context.Context, id string) error {
	out, err := r.ec2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{id}})
	if err != nil {
		return err
	}
	for _, refused := range out.Unsuccessful {
		if refused.Error != nil {
			return &refusal{code: sdk.ToString(refused.Error.Code), message: sdk.ToString(refused.Error.Message)}
		}
	}
	return nil
}

func (r *region) hasEndpoint(ctx context.Context, id string) (bool, error) {
	out, err := r.ec2.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{VpcEndpointIds: []string{id}})
	return err != nil || slices.ContainsFunc(out.VpcEndpoints, func(e types.VpcEndpoint) bool {
		return !strings.EqualFold(string(e.State), string(types.StateDeleted))
	}), err
}

func (r *region) deleteNATGateway(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &id})
	return err
}

func (r *region) hasNATGateway(ctx context.Context, id string) (bool, error) {
	out, err := r.ec2.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{id}})
	return err != nil || slices.ContainsFunc(out.NatGateways, func(g types.NatGateway) bool {
		return g.State != types.NatGatewayStateDeleted
	}), err
}

func (r *region) releaseAddress(ctx context.Context, id string) error {
	_, err := r.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &id})
	return err
}

func (r *region) deleteInterface(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
	return err
}

func (r *region) deleteVolume(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
	return err
}

// deleteSecurityGroup first removes the group's rules. The groups of a cluster name each other, and AWS does not delete a group that
// another group names. A "not found" error about a rule, or about the group in it, does not mean that this group is gone.
func (r *region) deleteSecurityGroup(ctx context.Context, id string) error {
	out, err := r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	if err != nil {
		return err
	}
	for _, g := range out.SecurityGroups {
		if len(g.IpPermissions) > 0 {
			in := &ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: g.IpPermissions}
			if _, err := r.ec2.RevokeSecurityGroupIngress(ctx, in); err != nil && !isGone(err) {
				return err
			}
		}
		if len(g.IpPermissionsEgress) > 0 {
			in := &ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: g.IpPermissionsEgress}
			if _, err := r.ec2.RevokeSecurityGroupEgress(ctx, in); err != nil && !isGone(err) {
				return err
			}
		}
	}
	_, err = r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id})
	return err
}

// deleteRouteTable first removes the table's associations with subnets. It keeps the main route table, which AWS deletes together with the
// VPC.
func (r *region) deleteRouteTable(ctx context.Context, id string) error {
	out, err := r.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{id}})
	if err != nil {
		return err
	}
	for _, table := range out.RouteTables {
		for _, a := range table.Associations {
			if sdk.ToBool(a.Main) {
				return nil
			}
			in := &ec2.DisassociateRouteTableInput{AssociationId: a.RouteTableAssociationId}
			if _, err := r.ec2.DisassociateRouteTable(ctx, in); err != nil && !isGone(err) {
				return err
			}
		}
	}
	_, err = r.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &id})
	return err
}

func (r *region) deleteGateway(ctx context.Context, id string) error {
	out, err := r.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{id}})
	if err != nil {
		return err
	}
	for _, g := range out.InternetGateways {
		for _, a := range g.Attachments {
			in := &ec2.DetachInternetGatewayInput{InternetGatewayId: &id, VpcId: a.VpcId}
			if _, err := r.ec2.DetachInternetGateway(ctx, in); err != nil && code(err) != "Gateway.NotAttached" && !isGone(err) {
				return err
			}
		}
	}
	_, err = r.ec2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &id})
	return err
}

func (r *region) deleteEgressGateway(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteEgressOnlyInternetGateway(ctx, &ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: &id})
	return err
}

func (r *region) deleteSubnet(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &id})
	return err
}

func (r *region) deleteVPC(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &id})
	return err
}

func (r *region) deleteTemplate(ctx context.Context, id string) error {
	_, err := r.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	return err
}

// deleteSecret deletes the secret without a recovery period, because the provider's secrets serve only a machine's first minutes.
func (r *region) deleteSecret(ctx context.Context, id string) error {
	_, err := r.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &id, ForceDeleteWithoutRecovery: sdk.Bool(true)})
	return err
}

// managed returns the names in an ARN of EKS: arn:aws:eks:REGION:ACCOUNT:cluster/CLUSTER or …:nodegroup/CLUSTER/GROUP/ID.
func managed(arn string) (cluster, group string) {
	const names = 3
	parts := strings.Split(arn, "/")
	if len(parts) < 2 {
		return arn, ""
	}
	if len(parts) >= names {
		group = parts[2]
	}
	return parts[1], group
}

func (r *region) deleteNodeGroup(ctx context.Context, id string) error {
	cluster, group := managed(id)
	_, err := r.eks.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &cluster, NodegroupName: &group})
	return err
}

func (r *region) hasNodeGroup(ctx context.Context, id string) (bool, error) {
	cluster, group := managed(id)
	_, err := r.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &group})
	return true, err
}

func (r *region) deleteManaged(ctx context.Context, id string) error {
	cluster, _ := managed(id)
	_, err := r.eks.DeleteCluster(ctx, &eks.DeleteClusterInput{Name: &cluster})
	return err
}

func (r *region) hasManaged(ctx context.Context, id string) (bool, error) {
	cluster, _ := managed(id)
	_, err := r.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &cluster})
	return true, err
}
