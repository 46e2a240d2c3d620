package why

// vsphereRemedies are the remedies for error messages of a vCenter, and for virtual machines that wait.
func vsphereRemedies() []Remedy {
	at := []Stage{StageProvider, StageCluster}
	return []Remedy{
		{
			ID: "vsphere-thumbprint", Title: "vCenter's certificate does not match the cluster's thumbprint",
			Means: "The certificate was renewed, the thumbprint is mistyped, or another server answers under this name.",
			Do: "Find out which: `openssl s_client -connect VCENTER:443 </dev/null | openssl x509 -noout -fingerprint -sha1`, and ask who runs " +
				"the vCenter. If the certificate was renewed, put its fingerprint into `thumbprint` of the cluster's values; " +
				"this replaces no machine.",
			match: match{stages: at, texts: []string{`thumbprint does not match`}},
			examples: []example{{
				StageProvider, "VCenterAvailable", "VCenterUnreachable",
				"failed to create client: Post \"https://vcenter.example.com/sdk\": host \"vcenter.example.com:443\" thumbprint does not match " +
					"\"AA:BB\"",
			}},
		},
		{
			ID: "vsphere-certificate-expired", Title: "The certificate of vCenter is not valid now",
			Means: "The certificate has expired, or the clock of the machine on which the provider runs is wrong.",
			Do: "Renew the certificate of vCenter, or set the clock. A fingerprint in `thumbprint` does not help: the provider reads it only for " +
				"a certificate that is valid. If the values of the clusters have a `thumbprint`, change it to that of the new certificate.",
			match: match{stages: at, texts: []string{`/sdk"?: .*x509: certificate has expired or is not yet valid`}},
			examples: []example{{
				StageProvider, "VCenterAvailable", "VCenterUnreachable",
				"failed to create client: Post \"https://vcenter.example.com/sdk\": tls: failed to verify certificate: x509: certificate has " +
					"expired or is not yet valid: current time 2026-11-25T18:23:29Z is after 2026-11-01T00:00:00Z",
			}},
		},
		{
			ID: "vsphere-authority", Title: "The provider does not trust vCenter's certificate",
			Means: "The certificate comes from an authority that the provider's image does not know, or is for another name than the value " +
				"`server`, and the cluster's values have no thumbprint.",
			Do: "Put the SHA-1 fingerprint of the certificate into `thumbprint` of the cluster's values, once you know that the fingerprint " +
				"is right.",
			match: match{stages: at, texts: []string{`/sdk"?: (tls: failed to verify certificate: )?x509:`}},
			examples: []example{
				{
					StageProvider, "VCenterAvailable", "VCenterUnreachable",
					"failed to create client: Post \"https://vcenter.example.com/sdk\": tls: failed to verify certificate: x509: certificate signed " +
						"by unknown authority",
				},
				{
					StageProvider, "VCenterAvailable", "VCenterUnreachable",
					"failed to create client: Post \"https://192.0.2.7/sdk\": tls: failed to verify certificate: x509: cannot validate certificate " +
						"for 192.0.2.7 because it doesn't contain any IP SANs",
				},
			},
		},
		{
			ID: "vsphere-datastore-full", Title: "The datastore is full",
			Means: "There is no space for the disks of another machine. While nodes are replaced, there is one more machine.",
			Do: "Free space on the datastore, extend it, or name another one in `placement.datastore`, which replaces the machines. `fleetctl " +
				"orphans` shows whether machines of lost clusters still take space. " +
				"The provider tries again by itself.",
			match: match{stages: at, texts: []string{
				`Insufficient disk space on datastore`, `insufficient space (on|in) (the )?datastore`, `datastore .*(is full|out of space)`,
				`general system error.*No space left on device`, `InsufficientStorageSpace`, `NoDiskSpace`,
			}},
			examples: []example{
				{StageProvider, "VMProvisioned", "TaskFailed", "Insufficient disk space on datastore 'ssd-1'."},
				{StageProvider, "VMProvisioned", "CloningFailed", "A general system error occurred: No space left on device"},
			},
		},
		{
			ID: "vsphere-host-fit", Title: "No host has room for the machine",
			Means: "No host of the resource pool is compatible with the machine, or has enough CPU and memory for it. The limit may be the " +
				"resource pool's, the reserve for high availability, or the hosts' own.",
			Do: "Compare `cpus` and `memoryGiB` with the hosts and with the resource pool's limits. Make the machine smaller, raise the limit, " +
				"add a host, or name another pool in `placement.resourcePool`. A template for newer hardware " +
				"than the hosts' does not fit either.",
			match: match{stages: at, texts: []string{
				`No host is compatible with the virtual machine`, `does not have sufficient (memory|CPU) resources`,
				`(CPU|Memory) resources in the parent resource pool are insufficient`, `Insufficient resources`,
				`insufficient (memory|CPU) resource`, `Number of virtual CPUs .* exceeds`, `requires hardware features that are unsupported`,
				`virtual machine version .* not supported`, `NoCompatibleHost`,
			}},
			examples: []example{
				{StageProvider, "VMProvisioned", "TaskFailed", "No host is compatible with the virtual machine."},
				{
					StageProvider, "VMProvisioned", "PoweringOnFailed",
					"The available Memory resources in the parent resource pool are insufficient for the operation.",
				},
				{StageProvider, "VMProvisioned", "PoweringOnFailed", "Insufficient resources to satisfy configured failover level for vSphere HA."},
			},
		},
		{
			ID: "vsphere-template", Title: "The template of the machines does not exist, or there are several",
			Means: "vCenter has no virtual machine or template at this path in the datacenter, or the provider's user may not see it.",
			Do: "Compare `template` with `govc find / -type m -name NAME`, and write the whole path, such as `/dc-1/vm/templates/NAME`. The " +
				"template must be in the datacenter of `placement.datacenter`, and have the cluster's Kubernetes version: " +
				"image-builder makes it. Grant the user's role on the template's folder, too.",
			match: match{stages: at, texts: []string{`unable to find (vm )?template`, `vm '.*' not found`, `resolves to multiple vms`}},
			examples: []example{
				{
					StageProvider, "VMProvisioned", "CloningFailed",
					"unable to find template by name \"ubuntu-2404-kube-v1.36.3\": vm 'ubuntu-2404-kube-v1.36.3' not found",
				},
				{StageProvider, "VMProvisioned", "CloningFailed", "unable to find template by name \"ubuntu\": path 'ubuntu' resolves to multiple vms"},
			},
		},
		{
			ID: "vsphere-disk-size", Title: "The disk is smaller than the template's",
			Means: "A clone's disk can only grow.",
			Do:    "Raise `diskGiB` in the cluster's values to the template's size, or more.",
			match: match{stages: at, texts: []string{`can't resize template disk down`}},
			examples: []example{{
				StageProvider, "VMProvisioned", "CloningFailed",
				"error getting disk spec for \"shop\": Error getting disk config spec for primary disk: can't resize template disk down, initial " +
					"capacity is larger: 83886080KiB > 20971520KiB",
			}},
		},
		{
			ID: "vsphere-placement", Title: "vCenter lacks an object that the placement names",
			Means: "The datacenter, datastore, folder, resource pool, network or storage policy of the cluster's values does not exist, or " +
				"several have the same name, or the provider's user may not see it.",
			Do: "Write the object's whole path, as `govc find /` prints it, below `placement` or in `network.name`, and grant the user's role on " +
				"the object. If `placement` leaves out a kind of which vCenter has several, name one. A change of `placement.*` or " +
				"`network.name` replaces the machines.",
			match: match{stages: at, texts: []string{
				`(datacenter|datastore|datastore cluster|resource pool|folder|network|compute resource|cluster) '.*' not found`,
				`no default (datacenter|datastore|resource ?pool|folder|network)`,
				`default (datacenter|datastore|resource ?pool|folder|network).* resolves to multiple`,
				`resolves to multiple (datacenters|datastores|resource pools|folders|networks)`, `no pbm profile found`,
				`no compatible datastores found for storage policy`, `failed to find datacenter`,
			}},
			examples: []example{
				{StageProvider, "VMProvisioned", "CloningFailed", "unable to get datastore ssd-9 for \"shop\": datastore 'ssd-9' not found"},
				{
					StageProvider, "VMProvisioned", "CloningFailed",
					"unable to get resource pool for \"shop\": default resourcepool resolves to multiple instances, please specify",
				},
				{StageProvider, "VMProvisioned", "CloningFailed", "unable to find network \"nodes\": network 'nodes' not found"},
				{
					StageProvider, "VCenterAvailable", "VCenterUnreachable",
					"failed to create vCenter session: failed to find datacenter \"dc-9\": datacenter 'dc-9' not found",
				},
				{
					StageProvider, "VMProvisioned", "CloningFailed",
					"unable to get storageProfileID from name gold for \"shop\": no pbm profile found with name: \"gold\"",
				},
			},
		},
		{
			ID: "vsphere-address", Title: "The machine runs, and has no address",
			Means: "DHCP gave the machine no address, the network is wrong, the pool of addresses is empty, or the template lacks VMware Tools, " +
				"which tell vCenter the address. In the first minutes of a machine this is normal.",
			Do: "Open the machine's console in vCenter. If the console shows no address, check that `network.name` is a network with DHCP and " +
				"free leases. If `network.addressPool` is set, look at `kubectl get ipaddressclaims,ipaddresses -n CLUSTER`. " +
				"If the console shows an address that vCenter does not show, the template lacks open-vm-tools.",
			match: match{stages: at, texts: []string{
				`WaitingForNetworkAddress`, `WaitingForStaticIPAllocation`, `WaitingForIPAllocation`, `IPAddressClaimsBeingCreated`,
				`WaitingForIPAddress`, `failed to wait for ip addresses`, `waiting for IP address claims`,
			}},
			examples: []example{
				{
					StageProvider, "VMProvisioned", "WaitingForNetworkAddresses",
					"VSphereMachine is waiting for network addresses (WaitingForNetworkAddresses)",
				},
				{StageProvider, "IPAddressClaimed", "WaitingForIPAddress", "waiting for IP address claims to be bound"},
			},
		},
		{
			ID: "vsphere-lost", Title: "vCenter no longer has the machine",
			Means: "Somebody deleted or unregistered the machine, or vCenter cannot reach its host or datastore for now. The provider does " +
				"not make the machine again, because it may come back.",
			Do: "If the machine is gone for good, delete its Machine with `kubectl delete machine NAME -n CLUSTER`. A new machine then " +
				"takes its place. A MachineHealthCheck does the same once the Node has not been Ready for long enough.",
			match:    match{stages: at, texts: []string{`NotFoundByBIOSUUID`, `vm with bios uuid .* not found`, `BIOS UUID .*not found`}},
			examples: []example{{StageProvider, "VMProvisioned", "NotFoundByBIOSUUID", "vm with bios uuid 4239-aa not found (NotFoundByBIOSUUID)"}},
		},
		{
			ID: "vsphere-name-taken", Title: "vCenter has another machine of that name",
			Means: "A machine of an earlier cluster, or of somebody else, has this name in the folder.",
			Do: "`fleetctl orphans` shows whether the machine is an orphan of the fleet. If not, give the cluster its own folder with " +
				"`placement.folder`.",
			match:    match{stages: at, texts: []string{`The name '.*' already exists`, `DuplicateName`}},
			examples: []example{{StageProvider, "VMProvisioned", "TaskFailed", "The name 'shop-x7k2p' already exists."}},
		},
		{
			ID: "vsphere-permissions", Title: "The provider's user may not do that in vCenter",
			Means: "vCenter knows the user, but the user's role lacks a privilege on the object.",
			Do: "Grant the role this privilege on that object; the table in docs/tasks/vsphere.md lists the privileges. vCenter's *Recent " +
				"tasks* names the privilege.",
			match: match{stages: at, texts: []string{
				`Permission to perform this operation was denied`, `ServerFaultCode: NoPermission`,
				`the privilege .* is missing`,
			}},
			examples: []example{{
				StageProvider, "VMProvisioned", "CloningFailed",
				"error trigging clone op for machine shop: ServerFaultCode: Permission to perform this operation was denied.",
			}},
		},
	}
}
