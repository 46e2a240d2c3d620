package why

// cloudRemedies are for what clouds answer to a provider.
func cloudRemedies() []Remedy {
	at := []Stage{StageProvider, StageCluster, StageControllers}
	return []Remedy{
		{
			ID: "cloud-credentials", Title: "The cloud does not take the credentials",
			Means: "They are wrong, have expired, or were revoked; or the provider has none.",
			Do:    "Put new ones where fleet.yaml says that they come from, and run `fleetctl init`: it gives them to the provider. `fleetctl doctor` tries them. A cluster with an identity of its own has them in that identity's Secret.",
			match: match{stages: at, texts: []string{
				`AuthFailure`, `InvalidClientTokenId`, `SignatureDoesNotMatch`, `ExpiredToken`, `security token included in the request is (expired|invalid)`, `NoCredentialProviders`, `failed to refresh cached credentials`,
				`UnrecognizedClientException`, `AADSTS\d+`, `invalid_client`, `invalid_grant`, `could not find default credentials`, `incorrect user name or password`, `Error 401`, `failed to create a default azure credential`,
				`ServerFaultCode: NotAuthenticated`,
			}},
			examples: []example{
				{StageProvider, "VpcReady", "VpcReconciliationFailed", "failed to query ec2 for VPCs: operation error EC2: DescribeVpcs, https response error StatusCode: 401, api error AuthFailure: AWS was not able to validate the provided access credentials"},
				{StageProvider, "Ready", "Failed", "DefaultAzureCredential: failed to acquire a token: AADSTS7000215: Invalid client secret provided"},
				{StageProvider, "Ready", "", "googleapi: Error 401: Request had invalid authentication credentials"},
				{StageProvider, "VCenterAvailable", "VCenterUnreachable", "ServerFaultCode: Cannot complete login due to an incorrect user name or password."},
			},
		},
		{
			ID: "identity", Title: "The identity that the cluster names cannot be used",
			Means: "It does not exist, its Secret is not there, or it does not admit the cluster's namespace.",
			Do:    "`kubectl describe` the identity that the message names. Its `allowedNamespaces` must admit the namespace: those of one environment carry the label `fleetctl.dev/environment`. Its Secret is looked for in the provider's own namespace.",
			match: match{stages: at, texts: []string{`PrincipalUsageUnauthorized`, `PrincipalCredentialRetrievalFailed`, `NamespaceNotAllowedByIdentity`, `ClusterIdentity.*not found`, `StaticIdentity.*not found`, `RoleIdentity.*not found`, `identity isn't (ready|allowed)`, `failed to retrieve.*identity`}},
			examples: []example{
				{StageProvider, "PrincipalUsageAllowed", "PrincipalUsageUnauthorized", "Unauthorized reference to principal"},
				{StageProvider, "NetworkInfrastructureReady", "NamespaceNotAllowedByIdentity", "AzureClusterIdentity list of allowed namespaces doesn't include current cluster namespace"},
				{StageProvider, "PrincipalCredentialRetrieved", "PrincipalCredentialRetrievalFailed", "AWSClusterStaticIdentity.infrastructure.cluster.x-k8s.io \"dev\" not found"},
			},
		},
		{
			ID: "cloud-throttled", Title: "The cloud answers fewer requests than it is sent",
			Means: "The account asks too often, in all that uses it together. Nothing is used up, and it passes.",
			Do:    "Wait: the provider tries again, less often each time. If it lasts, find what else asks in this account and region, or ask the cloud for a higher rate.",
			match: match{stages: at, texts: []string{`RequestLimitExceeded`, `Throttling(Exception)?:`, `RequestsThrottled`, `TooManyRequestsException`, `rateLimitExceeded`, `Rate Limit Exceeded`, `Error 429`, `RESPONSE 429`, `StatusCode: 429`}},
			examples: []example{
				{StageProvider, "VpcReady", "VpcReconciliationFailed", "operation error EC2: DescribeVpcs, https response error StatusCode: 503, api error RequestLimitExceeded: Request limit exceeded."},
				{StageProvider, "Ready", "Failed", "RESPONSE 429: 429 Too Many Requests ERROR CODE: TooManyRequests"},
				{StageProvider, "Ready", "", "googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded"},
			},
		},
		{
			ID: "cloud-service-off", Title: "A service of the cloud is not switched on in the account",
			Means: "The credentials are good, and no permission is missing: the account, project or subscription has never enabled what the provider calls.",
			Do:    "Enable it. For Google Cloud `gcloud services enable` the API that the message names; for Azure `az provider register --namespace` the one that it names; for AWS subscribe to the service or the image in the console.",
			match: match{stages: at, texts: []string{`has not been used in project`, `SERVICE_DISABLED`, `accessNotConfigured`, `MissingSubscriptionRegistration`, `OptInRequired`}},
			examples: []example{
				{StageProvider, "Ready", "", "googleapi: Error 403: Compute Engine API has not been used in project 123 before or it is disabled., accessNotConfigured"},
				{StageProvider, "Ready", "Failed", "RESPONSE 409: MissingSubscriptionRegistration: The subscription is not registered to use namespace 'Microsoft.Compute'."},
				{StageProvider, "InstanceReady", "InstanceProvisionFailed", "failed to create AWSMachine instance: api error OptInRequired: You are not subscribed to this service."},
			},
		},
		{
			ID: "cloud-quota", Title: "A quota of the account is used up",
			Means: "The cloud gives this account no more of what the message names.",
			Do:    "Delete what nobody needs, ask the cloud for more, or take another region. The provider goes on by itself.",
			match: match{stages: at, texts: []string{`LimitExceeded`, `QuotaExceeded`, `QUOTA_EXCEEDED`, `Quota '.*' exceeded`, `exceeding approved .* quota`, `maximum number of .* has been reached`}},
			examples: []example{
				{StageProvider, "VpcReady", "VpcReconciliationFailed", "failed to create vpc: VpcLimitExceeded: The maximum number of VPCs has been reached."},
				{StageProvider, "VMRunning", "Failed", "OperationNotAllowed: Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota"},
				{StageProvider, "Ready", "", "googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west1."},
			},
		},
		{
			ID: "cloud-permissions", Title: "The credentials may not do what the provider asks for",
			Means: "They are known to the cloud, and lack a permission; the message names the action.",
			Do: "Grant that action. For AWS `clusterawsadm bootstrap iam create-cloudformation-stack` makes the policies that the provider needs; for Azure the service principal needs *Contributor* (and *User Access Administrator* for " +
				"managed identities); for Google Cloud *Compute Admin* and *Service Account User*.",
			match: match{stages: at, texts: []string{
				`UnauthorizedOperation`, `AccessDenied`, `is not authorized to perform`, `AuthorizationFailed`, `does not have authorization to perform`, `Error 403`, `Required '.*' permission`, `LinkedAuthorizationFailed`,
			}},
			examples: []example{
				{StageProvider, "VpcReady", "VpcReconciliationFailed", "failed to create vpc: UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/ci is not authorized to perform: ec2:CreateVpc"},
				{StageProvider, "Ready", "Failed", "RESPONSE 403: AuthorizationFailed: The client 'x' with object id 'y' does not have authorization to perform action 'Microsoft.Network/virtualNetworks/write'"},
				{StageProvider, "Ready", "", "googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/p/global/networks/n', forbidden"},
			},
		},
		{
			ID: "cloud-capacity", Title: "The cloud has no such machine left there",
			Means:    "It is out of machines of this type in this zone. That is its own, and passes.",
			Do:       "Wait, or take another zone or type: `fleetctl pool add` one with other values beside it, then remove the first.",
			match:    match{stages: at, texts: []string{`InsufficientInstanceCapacity`, `AllocationFailed`, `ZonalAllocationFailed`, `ZONE_RESOURCE_POOL_EXHAUSTED`, `SkuNotAvailable`, `does not have enough resources`}},
			examples: []example{{StageProvider, "InstanceReady", "InstanceProvisionFailed", "failed to create AWSMachine instance: InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested"}},
		},
		{
			ID: "machine-image", Title: "The image for the machines is not there",
			Means: "No image for this Kubernetes version, region and operating system is where the provider looks.",
			Do: "Name one in the cluster's values (the chart's README says which), or build it with image-builder. For AWS, older public images were withdrawn: set `imageLookup` or an AMI of your own. For docker the node image must be on the host's " +
				"engine.",
			match: match{stages: at, texts: []string{
				`no AMIs? `, `failed to find AMI`, `InvalidAMIID`, `PlatformImageNotFound`, `GalleryImageNotFound`, `sourceImage.*(not found|invalid)`, `No such image`, `manifest unknown`, `failed to pull image`,
			}},
			examples: []example{
				{StageProvider, "InstanceReady", "InstanceProvisionFailed", "failed to create AWSMachine instance: found no AMIs with the name: \"capa-ami-ubuntu-24.04-v1.36.3-*\""},
				{StageProvider, "ContainerProvisioned", "ContainerProvisioningFailed", "failed to create worker DockerMachine: Error response from daemon: No such image: kindest/node:v1.36.3"},
			},
		},
		{
			ID: "machine-type", Title: "The cloud does not know the machine type",
			Means:    "It is misspelt, or the region does not have it.",
			Do:       "Correct it in the cluster's file; `fleetctl validate` knows the shape of such names, and not what a region has.",
			match:    match{stages: at, texts: []string{`InstanceType`, `requested instance type`, `machineTypes/.*not found`, `Invalid value for field 'resource.machineType'`, `vmSize`, `VM size .* is not available`}},
			examples: []example{{StageProvider, "InstanceReady", "InstanceProvisionFailed", "failed to create AWSMachine instance: InvalidParameterValue: Invalid value 'm5.larg' for InstanceType."}, {StageProvider, "Ready", "", "Invalid value for field 'resource.machineType': 'zones/europe-west1-b/machineTypes/n9-standard-2'"}},
		},
		{
			ID: "key-pair", Title: "The SSH key is not in the account",
			Means:    "A key is named for the machines that the region does not have.",
			Do:       "Import it there, or leave the key's name out of the cluster's values: machines need none.",
			match:    match{stages: at, texts: []string{`InvalidKeyPair`, `key pair .*does not exist`}},
			examples: []example{{StageProvider, "InstanceReady", "InstanceProvisionFailed", "failed to create AWSMachine instance: InvalidKeyPair.NotFound: The key pair 'default' does not exist"}},
		},
		{
			ID: "network-conflict", Title: "The network overlaps with another one",
			Means:    "A range of addresses is taken, or does not fit into the network that it is to be in.",
			Do:       "Give the cluster other ranges in its values, and run `fleetctl validate`: it compares those of one fleet.",
			match:    match{stages: at, texts: []string{`InvalidSubnet\.(Conflict|Range)`, `InvalidVpc\.Range`, `CIDR.*(overlap|conflict)`, `overlaps with`, `NetcfgInvalidSubnet`, `NetcfgSubnetRangesOverlap`}},
			examples: []example{{StageProvider, "SubnetsReady", "SubnetsReconciliationFailed", "failed to create subnet: InvalidSubnet.Conflict: The CIDR '10.0.0.0/24' conflicts with another subnet"}},
		},
		{
			ID: "still-in-use", Title: "Something in the cloud is still in use, and cannot be deleted",
			Means:    "Load balancers, volumes, or what somebody made by hand hang on it; a cluster that was deleted before its services leaves such.",
			Do:       "Find what the message names in the cloud's console, delete it there, and the provider goes on by itself.",
			match:    match{stages: at, texts: []string{`DependencyViolation`, `has dependencies and cannot be deleted`, `InUseSubnetCannotBeDeleted`, `resource is being used`, `resourceInUseByAnotherResource`}},
			examples: []example{{StageProvider, "VpcReady", "DeletionFailed", "failed to delete subnet \"subnet-1\": DependencyViolation: The subnet 'subnet-1' has dependencies and cannot be deleted."}},
		},
		{
			ID: "engine", Title: "The container engine does not answer",
			Means:    "The docker provider makes machines as containers, and cannot reach the engine of the host.",
			Do:       "Start the engine. On an embedded host set `CONTAINER_HOST` or `DOCKER_HOST` for `fleetctl init`; on kind, run `fleetctl doctor`.",
			match:    match{stages: at, texts: []string{`Cannot connect to the Docker daemon`, `docker\.sock`, `podman\.sock`, `docker daemon (is )?running`}},
			examples: []example{{StageProvider, "LoadBalancerAvailable", "LoadBalancerProvisioningFailed", "failed to create load balancer: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"}},
		},
		{
			ID: "cloud-unreachable", Title: "The cloud's API does not answer",
			Means:    "From the management cluster, the name is not known, nothing answers, or a certificate is not trusted.",
			Do:       "Check the network and the proxy of where the provider runs, and the region's name: a wrong region is a name that nobody knows.",
			match:    match{stages: []Stage{StageProvider, StageControllers}, texts: []string{`no such host`, `dial tcp .*(timeout|refused|unreachable)`, `x509:`, `TLS handshake timeout`, `VCenterUnreachable`, `i/o timeout`}},
			examples: []example{{StageProvider, "VpcReady", "VpcReconciliationFailed", "operation error EC2: DescribeVpcs, request send failed, Post \"https://ec2.eu-centrall-1.amazonaws.com/\": dial tcp: lookup ec2.eu-centrall-1.amazonaws.com: no such host"}},
		},
	}
}
