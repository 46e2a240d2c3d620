package why

// subnetFull is for networks without a free address.
func subnetFull(at []Stage) Remedy {
	return Remedy{
		ID: "subnet-full", Title: "A subnet has no free address left",
		Means: "Machines, pods, load balancers or others have all addresses of the subnet that the message names.",
		Do: "Release addresses in that subnet, or give the cluster a larger subnet in its values. The range of a subnet cannot be changed, so " +
			"this means a new subnet and a new pool of workers in it: `fleetctl pool add`.",
		match: match{stages: at, texts: []string{
			`InsufficientFreeAddressesInSubnet`, `InsufficientCidrBlocks`, `SubnetIsFull`,
			`InsufficientSubnetSize`, `IP_SPACE_EXHAUSTED`, `IP space of .* is exhausted`,
		}},
		examples: []example{
			{
				StageProvider, "InstanceReady", "InstanceProvisionFailed",
				"failed to create AWSMachine instance: api error InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet " +
					"'subnet-0a1b' to satisfy the requested number of instances.",
			},
			{
				StageProvider, "NetworkInterfaceReady", "Failed",
				"RESPONSE 400: SubnetIsFull: Subnet shop-node-subnet with address prefix 10.1.0.0/29 does not have enough capacity for 1 IP " +
					"addresses.",
			},
			{StageProvider, "Ready", "", "IP_SPACE_EXHAUSTED: IP space of 'projects/p/regions/europe-west1/subnetworks/shop' is exhausted."},
		},
	}
}

// nameTaken is for a name that another resource in the cloud has already.
func nameTaken(at []Stage) Remedy {
	return Remedy{
		ID: "cloud-name-taken", Title: "Another resource in the cloud has the name",
		Means: "A cluster of another fleet, a cluster that was lost, or somebody's own work has left a resource with this name. Some names, " +
			"such as " +
			"those of buckets and DNS labels, are taken for all accounts of the cloud together.",
		Do: "Find out whose the resource is: `fleetctl orphans` lists what clusters of this fleet have left. Delete it if nobody needs it, " +
			"or give " +
			"the cluster another name. Do not delete what another management cluster still manages.",
		match: match{stages: at, texts: []string{
			`DuplicateLoadBalancerName`, `DuplicateTargetGroupName`,
			`ResourceInUseException: .*already exists`,
			`BucketAlreadyExists`, `EntityAlreadyExists`, `DnsRecordInUse`, `InvalidResourceGroupLocation`, `AlreadyTaken`,
			`Error 409: .*already exists`, `Already exists: projects/`,
		}},
		examples: []example{
			{
				StageProvider, "LoadBalancerReady", "LoadBalancerFailed",
				"api error DuplicateLoadBalancerName: A load balancer with the same name 'shop-apiserver' exists, but with different settings",
			},
			{
				StageProvider, "EKSControlPlaneReady", "EKSControlPlaneReconciliationFailed",
				"failed to create EKS cluster: ResourceInUseException: Cluster already exists with name: shop_shop-control-plane",
			},
			{
				StageProvider, "Ready", "Failed",
				"RESPONSE 400: DnsRecordInUse: DNS record shop-1.westeurope.cloudapp.azure.com is already used by another public IP.",
			},
			{
				StageProvider, "Ready", "",
				"googleapi: Error 409: The resource 'projects/p/global/networks/shop' already exists, alreadyExists",
			},
		},
	}
}

// cloudRegion is for regions and zones that the account cannot use.
func cloudRegion(at []Stage) Remedy {
	return Remedy{
		ID: "cloud-region", Title: "The account cannot use the region or zone",
		Means: "The name is misspelt, the account has not enabled the region, or the region does not have what the provider asks for.",
		Do: "Correct the region and the zones in the cluster's values, or enable the region in the cloud's console. A region cannot be changed " +
			"once the cluster has a network: then remove the cluster, and add it again.",
		match: match{stages: at, texts: []string{
			`RegionDisabledException`, `LocationNotAvailableForResourceType`, `NoRegisteredProviderFound`,
			`InvalidAvailabilityZone`, `availability zone .* (is invalid|does not exist)`, `Unknown (zone|region)\b`,
			`(zones|regions)/[a-z0-9-]+' was not found`,
		}},
		examples: []example{
			{
				StageProvider, "PrincipalCredentialRetrieved", "",
				"api error RegionDisabledException: STS is not activated in this region for account:123456789012.",
			},
			{
				StageProvider, "Ready", "Failed",
				"RESPONSE 400: LocationNotAvailableForResourceType: The provided location 'westeurop' is not available for resource type " +
					"'Microsoft.Network/virtualNetworks'.",
			},
			{StageProvider, "Ready", "", "googleapi: Error 400: Invalid value for field 'zone': 'europe-west1-x'. Unknown zone., invalid"},
		},
	}
}
