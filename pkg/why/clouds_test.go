package why

import "testing"

// TestCloudsWords: what AWS, Azure and Google Cloud answer in the ten most common failures, and more, each leads to its remedy.
func TestCloudsWords(t *testing.T) {
	const ec2 = "failed to create AWSMachine instance: operation error EC2: RunInstances, StatusCode: 400, api error "
	for text, want := range map[string]string{
		// AWS
		ec2 + "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows":  "cloud-quota",
		"failed to allocate Elastic IP: api error AddressLimitExceeded: The maximum number of addresses has been":   "cloud-quota",
		"operation error Elastic Load Balancing v2: CreateLoadBalancer, api error TooManyLoadBalancers: The quota":  "cloud-quota",
		ec2 + "MaxSpotInstanceCountExceeded: Max spot instance count exceeded":                                      "cloud-quota",
		ec2 + "UnauthorizedOperation: You are not authorized to perform this operation. with an explicit deny":      "cloud-permissions",
		"failed to get role: api error AccessDenied: User is not authorized to perform: iam:GetRole":                "cloud-permissions",
		ec2 + "InsufficientInstanceCapacity: We currently do not have sufficient m7i.large capacity":                "cloud-capacity",
		ec2 + "InsufficientHostCapacity: Insufficient capacity to launch the instance on the host":                  "cloud-capacity",
		ec2 + "Unsupported: Your requested instance type (m7i.large) is not supported in your requested AZ":         "machine-type",
		ec2 + "InvalidAMIID.NotFound: The image id '[ami-0a]' does not exist":                                       "machine-image",
		"failed to get ami SSM parameter: operation error SSM: GetParameter, ParameterNotFound: ":                   "machine-image",
		ec2 + "InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses":         "subnet-full",
		"api error DuplicateLoadBalancerName: A load balancer with the same name 'a' exists":                        "cloud-name-taken",
		"failed to create bucket: api error BucketAlreadyExists: The requested bucket name is not available":        "cloud-name-taken",
		"api error ExpiredTokenException: The security token included in the request is expired":                    "cloud-credentials",
		"api error RequestExpired: Request has expired.":                                                            "cloud-credentials",
		"operation error STS: AssumeRoleWithWebIdentity, api error InvalidIdentityToken: No OpenIDConnect provider": "cloud-credentials",
		ec2 + "InvalidKeyPair.NotFound: The key pair 'default' does not exist":                                      "key-pair",
		"api error RegionDisabledException: STS is not activated in this region for account:1.":                     "cloud-region",
		ec2 + "InvalidParameterValue: Value (eu-central-1x) for parameter availabilityZone is invalid. " +
			"InvalidAvailabilityZone": "cloud-region",
		ec2 + "RequestLimitExceeded: Request limit exceeded.":                 "cloud-throttled",
		"api error ThrottlingException: Rate exceeded":                        "cloud-throttled",
		"api error EC2ThrottledException: Request limit":                      "cloud-throttled",
		ec2 + "OptInRequired: In order to use this AWS Marketplace product":   "cloud-service-off",
		"api error InvalidSubnet.Range: The CIDR '10.1.0.0/24' is invalid.":   "network-conflict",
		"api error DependencyViolation: The vpc 'vpc-1' has dependencies and": "still-in-use",
		// Azure
		"OperationNotAllowed: Operation could not be completed as it results in exceeding approved Total Regional Cores quota": "cloud-quota",
		"PublicIPCountLimitReached: Cannot create more than 10 public IP addresses for this subscription in this region.":      "cloud-quota",
		"AuthorizationFailed: The client 'x' does not have authorization to perform action " +
			"'Microsoft.Compute/x/write'": "cloud-permissions",
		"RequestDisallowedByPolicy: Resource 'shop-vnet' was disallowed by " +
			"policy.": "cloud-permissions",
		"ZonalAllocationFailed: Allocation failed. We do not have sufficient capacity for the requested VM size in this zone": "cloud-capacity",
		"OverconstrainedZonalAllocationRequest: Allocation failed. VM(s) with the following constraints cannot be allocated":  "cloud-capacity",
		"SkuNotAvailable: The requested VM size for resource 'x' is currently not available in location 'westeurope'":         "cloud-capacity",
		"PlatformImageNotFound: The platform image 'x:y:z:latest' is not available.":                                          "machine-image",
		"InvalidParameter: The gallery image /CommunityGalleries/x/Images/y is not available in westeurope region.":           "machine-image",
		"DnsRecordInUse: DNS record shop.westeurope.cloudapp.azure.com is already used by another public " +
			"IP.": "cloud-name-taken",
		"InvalidResourceGroupLocation: Invalid resource group location 'a'. The Resource group already exists in " +
			"'b'": "cloud-name-taken",
		"SubnetIsFull: Subnet x with address prefix 10.0.0.0/29 does not have enough capacity for 1 IP addresses.": "subnet-full",
		"InsufficientSubnetSize: Pre-allocated IPs 93 exceeds IPs available 59 in Subnet Cidr 10.0.0.0/26":         "subnet-full",
		"AADSTS7000222: The provided client secret keys for app 'x' are " +
			"expired.": "cloud-credentials",
		"InvalidParameter: The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.":           "key-pair",
		"LocationNotAvailableForResourceType: The provided location 'x' is not available for resource type 'y'":    "cloud-region",
		"NoRegisteredProviderFound: No registered resource provider found for location 'x' and API version '2024'": "cloud-region",
		"RESPONSE 429: 429 Too Many Requests ERROR CODE: SubscriptionRequestsThrottled":                            "cloud-throttled",
		"MissingSubscriptionRegistration: The subscription is not registered to use namespace " +
			"'Microsoft.Compute'": "cloud-service-off",
		"MarketplacePurchaseEligibilityFailed: Offer with PublisherId: x cannot be purchased due to validation " +
			"errors": "cloud-service-off",
		"NetcfgSubnetRangesOverlap: Subnet 'b' is not valid because its IP address range overlaps with that of subnet " +
			"'a'": "network-conflict",
		// Google Cloud
		"googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west1., quotaExceeded":              "cloud-quota",
		`Insufficient regional quota to satisfy request: resource "CPUS": request requires '12.0' and is short '4.0'.`: "cloud-quota",
		"googleapi: Error 403: Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/i'":    "cloud-permissions",
		"SERVICE_ACCOUNT_ACCESS_DENIED: The user does not have access to service account 'x'.":                         "cloud-permissions",
		"googleapi: Error 412: Constraint constraints/compute.vmExternalIpAccess violated for project p.":              "cloud-permissions",
		"ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/p/zones/z' does not have enough resources available":         "cloud-capacity",
		"GCE_STOCKOUT: Instance 'x' creation failed: The zone does not currently have enough capacity":                 "cloud-capacity",
		"Invalid value for field 'resource.disks[0].initializeParams.sourceImage': 'x'. The referenced image resource " +
			"cannot be found.": "machine-image",
		"googleapi: Error 404: The resource 'projects/p/global/images/family/capi' was not found, notFound":                 "machine-image",
		"googleapi: Error 409: The resource 'projects/p/global/networks/shop' already exists, alreadyExists":                "cloud-name-taken",
		"googleapi: Error 409: Already exists: projects/p/locations/l/clusters/shop., alreadyExists":                        "cloud-name-taken",
		"IP_SPACE_EXHAUSTED: IP space of 'projects/p/regions/r/subnetworks/s' is exhausted.":                                "subnet-full",
		"oauth2: cannot fetch token: 400 Bad Request Response: {\"error\":\"invalid_grant\"}":                               "cloud-credentials",
		"googleapi: Error 400: Invalid value for field 'zone': 'europe-west1-x'. Unknown zone., invalid":                    "cloud-region",
		"googleapi: Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute', rateLimitExceeded": "cloud-throttled",
		"googleapi: Error 403: Compute Engine API has not been used in project 1 before, accessNotConfigured":               "cloud-service-off",
		"googleapi: Error 403: This API method requires billing to be enabled. Please enable billing on project #1":         "cloud-service-off",
		"Invalid value for field 'resource.machineType': 'zones/z/machineTypes/n9'. Machine type is not found":              "machine-type",
		"googleapi: Error 400: The network resource 'x' is already being used by 'y', resourceInUseByAnotherResource":       "still-in-use",
		// nobody's
		`secrets "shop-kubeconfig" already exists`: "",
	} {
		got := ""
		if found := remedyFor(&Link{Stage: StageProvider}, Trouble{Condition: "Ready", Reason: text}, nil); found != nil {
			got = found.ID
		}
		if got != want {
			t.Errorf("%q has the remedy %q, want %q", text, got, want)
		}
	}
}
