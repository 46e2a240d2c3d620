package why

// cloudRemedies are for the answers of clouds to a provider.
func cloudRemedies() []Remedy {
	at := []Stage{StageProvider, StageCluster, StageControllers}
	return []Remedy{
		{
			ID: "cloud-credentials", Title: "The cloud rejects the credentials",
			Means: "The credentials are wrong, have expired, or were revoked; or the provider has none.",
			Do: "Put new credentials into the source that fleet.yaml names, and run `fleetctl init`, which gives them to the provider. " +
				"`fleetctl doctor` tests them. If the cluster has its own identity, the credentials are in the Secret of that identity.",
			match: match{stages: at, texts: []string{
				`AuthFailure`, `InvalidClientTokenId`, `SignatureDoesNotMatch`, `ExpiredToken`,
				`security token included in the request is (expired|invalid)`, `NoCredentialProviders`, `failed to refresh cached credentials`,
				`UnrecognizedClientException`, `AADSTS\d+`, `invalid_client`, `invalid_grant`, `could not find default credentials`,
				`incorrect user name or password`, `Error 401`, `failed to create a default azure credential`,
				`ServerFaultCode: NotAuthenticated`, `RequestExpired`, `InvalidIdentityToken`, `IDPCommunicationError`,
			}},
			examples: []example{
				{
					StageProvider, "VpcReady", "VpcReconciliationFailed",
					"failed to query ec2 for VPCs: operation error EC2: DescribeVpcs, https response error StatusCode: 401, api error AuthFailure: AWS " +
						"was not able to validate the provided access credentials",
				},
				{StageProvider, "Ready", "Failed", "DefaultAzureCredential: failed to acquire a token: AADSTS7000215: Invalid client secret provided"},
				{StageProvider, "Ready", "", "googleapi: Error 401: Request had invalid authentication credentials"},
				{
					StageProvider, "VCenterAvailable", "VCenterUnreachable",
					"ServerFaultCode: Cannot complete login due to an incorrect user name or password.",
				},
			},
		},
		{
			ID: "identity", Title: "The identity that the cluster names cannot be used",
			Means: "The identity does not exist, its Secret is missing, or it does not admit the cluster's namespace.",
			Do: "`kubectl describe` the identity that the message names. Its `allowedNamespaces` must admit the cluster's namespace, which " +
				"has the label `fleetctl.dev/environment`. The provider looks for the identity's Secret in its own namespace.",
			match: match{stages: at, texts: []string{
				`PrincipalUsageUnauthorized`, `PrincipalCredentialRetrievalFailed`,
				`NamespaceNotAllowedByIdentity`, `ClusterIdentity.*not found`, `StaticIdentity.*not found`, `RoleIdentity.*not found`,
				`identity isn't (ready|allowed)`, `failed to retrieve.*identity`,
			}},
			examples: []example{
				{StageProvider, "PrincipalUsageAllowed", "PrincipalUsageUnauthorized", "Unauthorized reference to principal"},
				{
					StageProvider, "NetworkInfrastructureReady", "NamespaceNotAllowedByIdentity",
					"AzureClusterIdentity list of allowed namespaces doesn't include current cluster namespace",
				},
				{
					StageProvider, "PrincipalCredentialRetrieved", "PrincipalCredentialRetrievalFailed",
					"AWSClusterStaticIdentity.infrastructure.cluster.x-k8s.io \"dev\" not found",
				},
			},
		},
		{
			ID: "cloud-throttled", Title: "The cloud limits the rate of requests",
			Means: "All programs that use this account send too many requests together. No quota of resources is used up, and the fault passes.",
			Do: "Wait: the provider tries again, less often each time. If the fault stays, find other programs that send requests in this " +
				"account and region, or ask the cloud for a higher rate.",
			match: match{stages: at, texts: []string{
				`RequestLimitExceeded`, `Throttling(Exception)?:`, `RequestsThrottled`,
				`TooManyRequestsException`, `rateLimitExceeded`, `Rate Limit Exceeded`, `Error 429`, `RESPONSE 429`, `StatusCode: 429`,
				`EC2Throttled`, `RequestThrottled`, `too many requests`, `SlowDown`,
			}},
			examples: []example{
				{
					StageProvider, "VpcReady", "VpcReconciliationFailed",
					"operation error EC2: DescribeVpcs, https response error StatusCode: 503, api error RequestLimitExceeded: Request limit exceeded.",
				},
				{StageProvider, "Ready", "Failed", "RESPONSE 429: 429 Too Many Requests ERROR CODE: TooManyRequests"},
				{StageProvider, "Ready", "", "googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded"},
			},
		},
		{
			ID: "cloud-service-off", Title: "A service of the cloud is not switched on in the account",
			Means: "The credentials are valid, and no permission is missing. The account, project or subscription has never enabled the service " +
				"that the provider calls.",
			Do: "Enable the service that the message names. For Google Cloud use `gcloud services enable`, for Azure `az provider register " +
				"--namespace`. For AWS subscribe to the service or the image in the console. If the message is about billing or the terms of an " +
				"image, enable billing for the project, or accept the terms.",
			match: match{stages: at, texts: []string{
				`has not been used in project`, `SERVICE_DISABLED`, `accessNotConfigured`,
				`MissingSubscriptionRegistration`, `OptInRequired`, `billing to be enabled`, `BILLING_DISABLED`,
				`MarketplacePurchaseEligibilityFailed`, `SubscriptionNotRegistered`,
			}},
			examples: []example{
				{
					StageProvider, "Ready", "",
					"googleapi: Error 403: Compute Engine API has not been used in project 123 before or it is disabled., accessNotConfigured",
				},
				{
					StageProvider, "Ready", "Failed",
					"RESPONSE 409: MissingSubscriptionRegistration: The subscription is not registered to use namespace 'Microsoft.Compute'.",
				},
				{
					StageProvider, "InstanceReady", "InstanceProvisionFailed",
					"failed to create AWSMachine instance: api error OptInRequired: You are not subscribed to this service.",
				},
			},
		},
		subnetFull(at),
		nameTaken(at),
		cloudRegion(at),
		{
			ID: "cloud-quota", Title: "A quota of the account is used up",
			Means: "The cloud gives this account no more resources of the kind that the message names.",
			Do:    "Delete resources that nobody needs, ask the cloud for a higher quota, or use another region. The provider goes on by itself.",
			match: match{stages: at, texts: []string{
				`LimitExceeded`, `QuotaExceeded`, `QUOTA_EXCEEDED`, `Quota '.*' exceeded`,
				`exceeding approved .* quota`, `maximum number of .* has been reached`, `TooMany(LoadBalancers|TargetGroups|Buckets|Tags)`,
				`CountLimitReached`, `CountExceeded`, `CountPerSubscriptionExceeded`, `Insufficient regional quota`,
			}},
			examples: []example{
				{
					StageProvider, "VpcReady", "VpcReconciliationFailed",
					"failed to create vpc: VpcLimitExceeded: The maximum number of VPCs has been reached.",
				},
				{
					StageProvider, "VMRunning", "Failed",
					"OperationNotAllowed: Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota",
				},
				{StageProvider, "Ready", "", "googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west1."},
			},
		},
		{
			ID: "cloud-permissions", Title: "The credentials may not do what the provider asks for",
			Means: "The cloud knows the credentials, but they lack a permission, or a policy of the organization forbids it. The message names " +
				"the action or the policy.",
			Do: "Grant that action, or have the policy make an exception. For AWS, `clusterawsadm bootstrap iam create-cloudformation-stack` " +
				"makes the policies that the provider " +
				"needs. " +
				"For Azure, the service principal needs *Contributor*, and for managed identities also *User Access Administrator*. " +
				"For Google Cloud, it needs *Compute Admin* and *Service Account User*.",
			match: match{stages: at, texts: []string{
				`UnauthorizedOperation`, `AccessDenied`, `is not authorized to perform`, `AuthorizationFailed`,
				`does not have authorization to perform`, `Error 403`, `Required '.*' permission`, `LinkedAuthorizationFailed`,
				`RequestDisallowedByPolicy`,
				`Constraint constraints/.* violated`, `SERVICE_ACCOUNT_ACCESS_DENIED`, `does not have access to service account`,
			}},
			examples: []example{
				{
					StageProvider, "VpcReady", "VpcReconciliationFailed",
					"failed to create vpc: UnauthorizedOperation: You are not authorized to perform this operation. User: " +
						"arn:aws:iam::123456789012:user/ci is not authorized to perform: ec2:CreateVpc",
				},
				{
					StageProvider, "Ready", "Failed",
					"RESPONSE 403: AuthorizationFailed: The client 'x' with object id 'y' does not have authorization to perform action " +
						"'Microsoft.Network/virtualNetworks/write'",
				},
				{
					StageProvider, "Ready", "",
					"googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/p/global/networks/n', forbidden",
				},
			},
		},
		{
			ID: "cloud-capacity", Title: "The zone has no machine of this type left",
			Means: "The cloud has run out of machines of this type in this zone. Your account is not the cause, and the fault passes.",
			Do:    "Wait, or use another zone or type: add a second pool with other values with `fleetctl pool add`, then remove the first pool.",
			match: match{stages: at, texts: []string{
				`Insufficient(Instance|Host|ReservedInstance)?Capacity`, `AllocationFailed`,
				`Overconstrained(Zonal)?AllocationRequest`, `GCE_STOCKOUT`,
				`ZONE_RESOURCE_POOL_EXHAUSTED`, `SkuNotAvailable`, `does not have enough resources`,
			}},
			examples: []example{{
				StageProvider, "InstanceReady", "InstanceProvisionFailed",
				"failed to create AWSMachine instance: InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the " +
					"Availability Zone you requested",
			}},
		},
		{
			ID: "machine-image", Title: "The image for the machines does not exist",
			Means: "The provider finds no image for this Kubernetes version, region and operating system.",
			Do: "Name an image in the cluster's values (the chart's README names the value), or build one with image-builder. On AWS, older " +
				"public " +
				"images were withdrawn: set `imageLookup`, or your own AMI. For docker, the container engine of the host must have the node image.",
			match: match{stages: at, texts: []string{
				`no AMIs? `, `failed to find AMI`, `InvalidAMIID`, `PlatformImageNotFound`, `GalleryImageNotFound`,
				`sourceImage.*(not found|cannot be found|invalid)`,
				`images/.* was not found`, `gallery image .* (is not available|was not found)`, `ParameterNotFound`,
				`No such image`, `manifest unknown`, `failed to pull image`,
			}},
			examples: []example{
				{
					StageProvider, "InstanceReady", "InstanceProvisionFailed",
					"failed to create AWSMachine instance: found no AMIs with the name: \"capa-ami-ubuntu-24.04-v1.36.3-*\"",
				},
				{
					StageProvider, "ContainerProvisioned", "ContainerProvisioningFailed",
					"failed to create worker DockerMachine: Error response from daemon: No such image: kindest/node:v1.36.3",
				},
			},
		},
		{
			ID: "machine-type", Title: "The cloud does not know the machine type",
			Means: "It is misspelt, or the region does not have it.",
			Do: "Correct the name in the cluster's file. `fleetctl validate` checks only the form of such names, because it does not know " +
				"which types a region has.",
			match: match{stages: at, texts: []string{
				`InstanceType`, `requested instance type`, `machineTypes/.*not found`,
				`Invalid value for field 'resource.machineType'`, `vmSize`, `VM size .* is not available`,
			}},
			examples: []example{
				{
					StageProvider, "InstanceReady", "InstanceProvisionFailed",
					"failed to create AWSMachine instance: InvalidParameterValue: Invalid value 'm5.larg' for InstanceType.",
				},
				{StageProvider, "Ready", "", "Invalid value for field 'resource.machineType': 'zones/europe-west1-b/machineTypes/n9-standard-2'"},
			},
		},
		{
			ID: "key-pair", Title: "The cloud rejects the SSH key",
			Means: "The cluster's values name a key that the region does not have, or have a text that is no public key.",
			Do: "Import the key there, or correct it in the cluster's values. Without a key in the values no machine needs one. Azure takes a " +
				"public RSA key in one line.",
			match: match{stages: at, texts: []string{`InvalidKeyPair`, `key pair .*does not exist`, `ssh\.publicKeys`, `InvalidKey\.Format`}},
			examples: []example{{
				StageProvider, "InstanceReady", "InstanceProvisionFailed",
				"failed to create AWSMachine instance: InvalidKeyPair.NotFound: The key pair 'default' does not exist",
			}},
		},
		{
			ID: "network-conflict", Title: "The network overlaps with another one",
			Means: "A range of addresses is in use, or is outside of the range of its network.",
			Do:    "Give the cluster other ranges in its values, and run `fleetctl validate`, which compares the ranges of one cluster.",
			match: match{stages: at, texts: []string{
				`InvalidSubnet\.(Conflict|Range)`, `InvalidVpc\.Range`, `CIDR.*(overlap|conflict)`,
				`overlaps with`, `NetcfgInvalidSubnet`, `NetcfgSubnetRangesOverlap`,
			}},
			examples: []example{{
				StageProvider, "SubnetsReady", "SubnetsReconciliationFailed",
				"failed to create subnet: InvalidSubnet.Conflict: The CIDR '10.0.0.0/24' conflicts with another subnet",
			}},
		},
		{
			ID: "still-in-use", Title: "Something in the cloud is still in use, and cannot be deleted",
			Means: "Load balancers, volumes, or resources that somebody made by hand use it. A cluster that is deleted before its Services " +
				"leaves such resources.",
			Do: "Find the resource that the message names in the cloud's console, and delete the resources that use it. The provider then " +
				"goes on by itself.",
			match: match{stages: at, texts: []string{
				`DependencyViolation`, `has dependencies and cannot be deleted`,
				`InUseSubnetCannotBeDeleted`, `resource is being used`, `resourceInUseByAnotherResource`,
			}},
			examples: []example{{
				StageProvider, "VpcReady", "DeletionFailed",
				"failed to delete subnet \"subnet-1\": DependencyViolation: The subnet 'subnet-1' has dependencies and cannot be deleted.",
			}},
		},
		{
			ID: "engine", Title: "The container engine does not answer",
			Means: "The docker provider makes machines as containers. It cannot reach the container engine of the host.",
			Do: "Start the engine. On an embedded host set `CONTAINER_HOST` or `DOCKER_HOST` for `fleetctl init`; on kind, run `fleetctl " +
				"doctor`.",
			match: match{stages: at, texts: []string{
				`Cannot connect to the Docker daemon`, `docker\.sock`, `podman\.sock`,
				`docker daemon (is )?running`,
			}},
			examples: []example{{
				StageProvider, "LoadBalancerAvailable", "LoadBalancerProvisioningFailed",
				"failed to create load balancer: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
			}},
		},
		{
			ID: "cloud-unreachable", Title: "The cloud's API does not answer",
			Means: "The management cluster cannot resolve the name of the API, gets no answer, or does not trust the certificate.",
			Do: "Check the network and the proxy of the machine on which the provider runs. Check the name of the region, because a wrong " +
				"region leads to a name that does not exist.",
			match: match{stages: []Stage{StageProvider, StageControllers}, texts: []string{
				`no such host`,
				`dial tcp .*(timeout|refused|unreachable)`, `x509:`, `TLS handshake timeout`, `VCenterUnreachable`, `i/o timeout`,
			}},
			examples: []example{{
				StageProvider, "VpcReady", "VpcReconciliationFailed",
				"operation error EC2: DescribeVpcs, request send failed, Post \"https://ec2.eu-centrall-1.amazonaws.com/\": dial tcp: lookup " +
					"ec2.eu-centrall-1.amazonaws.com: no such host",
			}},
		},
	}
}
