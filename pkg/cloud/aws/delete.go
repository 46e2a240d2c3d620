package aws

import (
	"context"
	"errors"
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
)

const (
	// patience is how long all of one kind may take to go: an EKS cluster takes some fifteen minutes.
	patience = 20 * time.Minute
	// pause lies between two looks at what takes its time.
	pause = 3 * time.Second
)

// Delete deletes region by region, and of each what depends on others before those.
func (a *Account) Delete(ctx context.Context, resources []cloud.Resource, said func(string)) error {
	byRegion := map[string][]cloud.Resource{}
	for _, resource := range resources {
		if !resource.ByHand {
			byRegion[resource.Region] = append(byRegion[resource.Region], resource)
		}
	}
	var failed []error
	for _, name := range sortedKeys(byRegion) {
		if err := a.in(name).delete(ctx, byRegion[name], said); err != nil {
			failed = append(failed, fmt.Errorf("region %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// delete goes on after a kind that does not go: what nothing holds is gone then, and costs no more. The first error of each kind is told.
func (r *region) delete(ctx context.Context, all []cloud.Resource, said func(string)) error {
	var failed []error
	for _, kind := range order {
		ids := idsOf(all, kind)
		if len(ids) == 0 {
			continue
		}
		said(fmt.Sprintf("%s: %d of kind %s", r.name, len(ids), kind))
		if kind == kindSecurityGroup {
			if err := r.revokeRules(ctx, ids); err != nil {
				failed = append(failed, fmt.Errorf("revoke the rules of security groups: %w", short(err)))
			}
		}
		if err := r.deleteKind(ctx, kind, ids); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

func idsOf(all []cloud.Resource, kind string) []string {
	var ids []string
	for _, resource := range all {
		if resource.Kind == kind {
			ids = append(ids, resource.ID)
		}
	}
	return ids
}

// deleteKind asks for the end of each, and waits until all are gone.
func (r *region) deleteKind(ctx context.Context, kind string, ids []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not gone within %s", patience))
	defer cancel()
	left := slices.Clone(ids)
	for {
		var held error
		var err error
		left = slices.DeleteFunc(left, func(id string) bool {
			if err != nil {
				return false
			}
			gone, deleteErr := r.deleteOne(ctx, kind, id)
			switch {
			case isGone(deleteErr):
				return true
			case isBusy(deleteErr):
				held = deleteErr
				return false
			case deleteErr != nil:
				err = fmt.Errorf("delete %s %s: %w", kind, id, short(deleteErr))
			}
			return gone && deleteErr == nil
		})
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			if held == nil {
				held = context.Cause(ctx)
			}
			return fmt.Errorf("delete %s %s: %w", kind, strings.Join(left, ", "), short(held))
		case <-time.After(pause):
		}
	}
}

// deleteOne asks for the end of one, again and again until it is gone. What ends at once is gone with the answer.
func (r *region) deleteOne(ctx context.Context, kind, id string) (gone bool, err error) {
	switch kind {
	case kindNodeGroup, kindManaged:
		return false, r.deleteManaged(ctx, kind, id)
	case kindInstance:
		return r.terminate(ctx, id)
	case kindNATGateway:
		return r.deleteNATGateway(ctx, id)
	case kindLoadBalancer:
		_, err = r.elbv2.DeleteLoadBalancer(ctx, &elbv2.DeleteLoadBalancerInput{LoadBalancerArn: &id})
	case kindClassicBalancer:
		_, err = r.elb.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &id})
	case kindTargetGroup:
		_, err = r.elbv2.DeleteTargetGroup(ctx, &elbv2.DeleteTargetGroupInput{TargetGroupArn: &id})
	case kindEndpoint:
		_, err = r.ec2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{id}})
	case kindAddress:
		_, err = r.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &id})
	case kindInterface:
		_, err = r.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
	case kindVolume:
		_, err = r.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
	case kindSecurityGroup:
		_, err = r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id})
	case kindRouteTable:
		err = r.deleteRouteTable(ctx, id)
	case kindInternetGateway:
		err = r.deleteGateway(ctx, id)
	case kindEgressGateway:
		_, err = r.ec2.DeleteEgressOnlyInternetGateway(ctx, &ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: &id})
	case kindSubnet:
		_, err = r.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &id})
	case kindVPC:
		_, err = r.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &id})
	case kindTemplate:
		_, err = r.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	case kindSecret:
		_, err = r.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &id, ForceDeleteWithoutRecovery: sdk.Bool(true)})
	default:
		err = fmt.Errorf("nobody knows how to delete a %s", kind)
	}
	return true, err
}

func (r *region) terminate(ctx context.Context, id string) (gone bool, err error) {
	out, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return false, err
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			switch {
			case i.State != nil && i.State.Name == types.InstanceStateNameTerminated:
			case i.State != nil && i.State.Name == types.InstanceStateNameShuttingDown:
				return false, nil
			default:
				_, err := r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
				return false, err
			}
		}
	}
	return true, nil
}

func (r *region) deleteNATGateway(ctx context.Context, id string) (gone bool, err error) {
	out, err := r.ec2.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{id}})
	if err != nil {
		return false, err
	}
	for _, g := range out.NatGateways {
		switch g.State {
		case types.NatGatewayStateDeleted:
		case types.NatGatewayStateDeleting:
			return false, nil
		default:
			_, err := r.ec2.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &id})
			return false, err
		}
	}
	return true, nil
}

// deleteManaged deletes a cluster of EKS, or a node group of one, until it is not found any more. ARNs end in cluster/NAME and
// nodegroup/CLUSTER/NAME/ID.
func (r *region) deleteManaged(ctx context.Context, kind, arn string) error {
	parts := strings.Split(arn, "/")
	var err error
	switch {
	case kind == kindManaged && len(parts) == 2:
		_, err = r.eks.DeleteCluster(ctx, &eks.DeleteClusterInput{Name: &parts[1]})
	case kind == kindNodeGroup && len(parts) == 4:
		_, err = r.eks.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &parts[1], NodegroupName: &parts[2]})
	default:
		err = fmt.Errorf("%s is no ARN of a cluster or a node group", arn)
	}
	return err
}

// revokeRules takes away what has security groups hold each other: the rules that name other groups, and all others with them.
func (r *region) revokeRules(ctx context.Context, ids []string) error {
	return pages(func(token *string) (*string, error) {
		filter := types.Filter{Name: sdk.String("group-id"), Values: ids}
		out, err := r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter}, NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, g := range out.SecurityGroups {
			if len(g.IpPermissions) > 0 {
				_, err = r.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: g.GroupId, IpPermissions: g.IpPermissions})
			}
			if err == nil && len(g.IpPermissionsEgress) > 0 {
				_, err = r.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: g.GroupId, IpPermissions: g.IpPermissionsEgress})
			}
			if err != nil && !isGone(err) {
				return nil, err
			}
		}
		return out.NextToken, nil
	})
}

// deleteRouteTable frees its subnets first.
func (r *region) deleteRouteTable(ctx context.Context, id string) error {
	out, err := r.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{id}})
	if err != nil {
		return err
	}
	for _, table := range out.RouteTables {
		for _, a := range table.Associations {
			if sdk.ToBool(a.Main) {
				continue
			}
			if _, err := r.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: a.RouteTableAssociationId}); err != nil && !isGone(err) {
				return err
			}
		}
	}
	_, err = r.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &id})
	return err
}

// deleteGateway takes it off its VPC first.
func (r *region) deleteGateway(ctx context.Context, id string) error {
	out, err := r.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{id}})
	if err != nil {
		return err
	}
	for _, g := range out.InternetGateways {
		for _, a := range g.Attachments {
			if _, err := r.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &id, VpcId: a.VpcId}); err != nil && !isGone(err) {
				return err
			}
		}
	}
	_, err = r.ec2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &id})
	return err
}
