package why

// clusterRemedies are for what Cluster API, its providers' controllers and the nodes say.
func clusterRemedies() []Remedy {
	return []Remedy{
		{
			ID: "disk-full", Title: "A disk is full",
			Means:    "A controller, an engine or a node cannot write any more.",
			Do:       "Make room. An embedded host goes on by itself; `fleetctl doctor` shows how much is left.",
			match:    match{texts: []string{`no space left on device`, `DiskPressure`}},
			examples: []example{{StageControllers, "", "", "pod capd-controller-manager-0: container manager: write /data: no space left on device"}},
		},
		{
			ID: "image-pull", Title: "A controller's image cannot be had",
			Means:    "The nodes reach no registry, or the registry does not have the image.",
			Do:       "Without a network, install from a bundle: `fleetctl init --bundle DIR`. Behind a proxy, give the nodes the proxy.",
			match:    match{stages: []Stage{StageControllers}, texts: []string{`ImagePullBackOff`, `ErrImagePull`, `there is no image`, `no such image`}},
			examples: []example{{StageControllers, "", "", "pod capa-controller-manager-0: container manager: ImagePullBackOff: Back-off pulling image"}},
		},
		{
			ID: "not-installed", Title: "No provider is installed",
			Means:    "Cluster API is not on the management cluster, or its inventory is gone.",
			Do:       "`fleetctl init` installs what fleet.yaml names.",
			match:    match{stages: []Stage{StageControllers}, codes: []string{"NotInstalled"}},
			examples: []example{{StageControllers, "", "NotInstalled", "no provider is installed"}},
		},
		{
			ID: "controller-down", Title: "A provider's controller does not run",
			Means:    "Nothing of its kinds is made, changed or deleted until it does; often it lacks credentials or a CRD.",
			Do:       "On an embedded host `fleetctl host logs NAME` has its log, elsewhere `kubectl logs`. When it says what it lacks, `fleetctl init` again.",
			match:    match{stages: []Stage{StageControllers}},
			examples: []example{{StageControllers, "", "", "manager: ended with exit code 1 after 4 restarts: problem running manager"}},
		},
		{
			ID: "paused", Title: "Cluster API leaves it alone: it is paused",
			Means:    "Its Cluster, or it itself, is paused: by a person, or by a hand-over that did not come to its end.",
			Do:       "`fleetctl status` tells of a hand-over; `fleetctl pivot` finishes one, `fleetctl pivot --abort` undoes it. Otherwise set `spec.paused` of the Cluster to false, or take the annotation away.",
			match:    match{conditions: []string{"Paused"}},
			examples: []example{{StageCluster, "Paused", "Paused", "Cluster spec.paused is set to true"}},
		},
		{
			ID: "no-network", Title: "The nodes have no network",
			Means:    "No CNI is installed on the workload cluster, or its pods do not start: nodes stay NotReady.",
			Do:       "`fleetctl cni add`, then `--cni NAME` for the cluster. Where there is one, look at its pods with `fleetctl cluster kubeconfig NAME`.",
			match:    match{texts: []string{`cni plugin not initialized`, `NetworkPluginNotReady`, `network is not ready`, `NetworkUnavailable`}},
			examples: []example{{StageCluster, "NodeHealthy", "NodeNotHealthy", "* Node.Ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"}},
		},
		{
			ID: "bootstrap-failed", Title: "A machine came up and did not become a node",
			Means: "The machine is there, and it still boots, or kubeadm on it failed or cannot reach the control plane: a wrong image, no way out of its network, or a load balancer that does not answer.",
			Do: "Look at the machine's console, or at `/var/log/cloud-init-output.log` on it. For docker, `docker logs` of the container of the machine's name. Where the node is there and its machine does not know it, " +
				"docker's provider looked too early, and waits longer after each try, up to a quarter of an hour: `kubectl annotate dockermachine --all --namespace NAMESPACE look-again=$(date +%s) --overwrite` has it look at once.",
			match: match{stages: []Stage{StageCluster, StageProvider}, texts: []string{`BootstrapFailed`, `BootstrapExecSucceeded`, `failed to run kubeadm`, `NodeStartupTimeout`, `Node .* does not exist`, `Waiting for a Node with spec\.providerID`, `Waiting for .* to (set|report) spec\.providerID`, `Waiting for Cluster control plane to be initialized`}},
			examples: []example{
				{StageProvider, "BootstrapExecSucceeded", "BootstrapFailed", "Error: failed to run kubeadm: exit status 1"},
				{StageCluster, "NodeHealthy", "InspectionFailed", "Waiting for Cluster control plane to be initialized"},
				{StageCluster, "NodeHealthy", "NodeInspectionFailed", "Waiting for a Node with spec.providerID docker:////dev-1 to exist"},
			},
		},
		{
			ID: "version-refused", Title: "The Kubernetes version cannot be reached from where the cluster is",
			Means:    "A minor version is skipped, or the machines are newer than the control plane.",
			Do:       "`fleetctl cluster upgrade NAME` goes one minor version at a time, the control plane first.",
			match:    match{stages: []Stage{StageCluster, StageProvider, StageRelease}, texts: []string{`PreflightCheckFailed`, `KubernetesVersionSkew`, `KubeadmVersionSkew`, `version .*skew`, `cannot skip minor`}},
			examples: []example{{StageCluster, "MachinesReady", "PreflightCheckFailed", "MachineSet version (v1.37.0) and ControlPlane version (v1.35.2) do not conform to the kubernetes version skew policy (\"KubernetesVersionSkew\" preflight check failed)"}},
		},
		{
			ID: "etcd", Title: "etcd of the workload cluster is not healthy",
			Means:    "A member is lost, or most of them: the control plane is not changed until they answer.",
			Do:       "With most members alive, delete the Machine that is broken: another one takes its place. Without, restore etcd from a backup, or make the cluster anew.",
			match:    match{texts: []string{`etcd member .*(not healthy|unhealthy|fail|does not)`, `etcd cluster .*(not healthy|unhealthy)`, `EtcdMemberHealthy`, `etcd endpoints`}},
			examples: []example{{StageProvider, "EtcdClusterHealthy", "NotHealthy", "Machine dev-x: etcd member is not healthy: it does not answer"}},
		},
		{
			ID: "workload-unreachable", Title: "The management cluster does not reach the workload cluster's API server",
			Means:    "Its load balancer, a firewall or a route is in between, or its control plane is down: the machines may be fine.",
			Do:       "`fleetctl cluster kubeconfig NAME`, and try it with kubectl from where the management cluster runs. A cluster that only becomes known takes a minute.",
			match:    match{stages: []Stage{StageCluster, StageProvider}, texts: []string{`Remote connection (not established|probe failed)`, `ConnectionDown`, `ProbeFailed`, `Connection to the workload cluster`}, conditions: nil},
			examples: []example{{StageCluster, "RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed, probe last succeeded at 2026-01-01T00:00:00Z"}},
		},
		{
			ID: "unhealthy-machines", Title: "Too many machines are unhealthy to replace them",
			Means:    "A MachineHealthCheck stops where more are unhealthy than it may replace: the cause is common to them.",
			Do:       "Look for what they share (a zone, a network, an image) before raising `unhealthyLessThanOrEqualTo`.",
			match:    match{texts: []string{`TooManyUnhealthy`, `Remediation is not allowed`}},
			examples: []example{{StageCluster, "RemediationNotAllowed", "TooManyUnhealthy", "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy"}},
		},
		{
			ID: "reference-missing", Title: "The Cluster names an object that is not there",
			Means:    "It was deleted by hand, or never made: an incomplete chart or manifest.",
			Do:       "`fleetctl validate` names references that lead nowhere. Of a cluster made by a chart, Flux makes the object again: `flux reconcile helmrelease NAME -n NAMESPACE --force`.",
			match:    match{stages: []Stage{StageCluster, StageProvider}, texts: []string{`does not exist`, `ObjectDeleted`, `ObjectDoesNotExist`, `has been deleted`, `" not found`}},
			examples: []example{{StageCluster, "InfrastructureReady", "ObjectDoesNotExist", "AWSCluster does not exist"}},
		},
	}
}
