package why

// clusterRemedies are for messages of Cluster API, its providers' controllers and the nodes.
func clusterRemedies() []Remedy {
	return []Remedy{
		{
			ID: "disk-full", Title: "A disk is full",
			Means: "A controller, an engine or a node cannot write any more.",
			Do:    "Free some space. An embedded host then goes on by itself; `fleetctl doctor` shows the free space.",
			match: match{texts: []string{`no space left on device`, `DiskPressure`}},
			examples: []example{{
				StageControllers, "", "",
				"pod capd-controller-manager-0: container manager: write /data: no space left on device",
			}},
		},
		{
			ID: "image-pull", Title: "A controller's image cannot be pulled",
			Means: "The nodes reach no registry, or the registry does not have the image.",
			Do:    "Without a network, install from a bundle: `fleetctl init --bundle DIR`. Behind a proxy, give the nodes the proxy.",
			match: match{
				stages: []Stage{StageControllers},
				texts:  []string{`ImagePullBackOff`, `ErrImagePull`, `there is no image`, `no such image`},
			},
			examples: []example{{
				StageControllers, "", "",
				"pod capa-controller-manager-0: container manager: ImagePullBackOff: Back-off pulling image",
			}},
		},
		{
			ID: "not-installed", Title: "No provider is installed",
			Means:    "Cluster API is not on the management cluster, or its inventory is missing.",
			Do:       "`fleetctl init` installs what fleet.yaml names.",
			match:    match{stages: []Stage{StageControllers}, codes: []string{"NotInstalled"}},
			examples: []example{{StageControllers, "", "NotInstalled", "no provider is installed"}},
		},
		{
			ID: "controller-down", Title: "A provider's controller does not run",
			Means: "Until the controller runs, no object of its kinds is made, changed or deleted. Often it lacks credentials or a CRD.",
			Do: "`fleetctl host logs NAME` shows its log on an embedded host, and `kubectl logs` elsewhere. Correct the fault that the log " +
				"names, and run `fleetctl init` again.",
			match:    match{stages: []Stage{StageControllers}},
			examples: []example{{StageControllers, "", "", "manager: ended with exit code 1 after 4 restarts: problem running manager"}},
		},
		{
			ID: "hand-over", Title: "A hand-over of it is under way",
			Means: "A pivot, a transfer, a detachment or a restore was interrupted, or is at work. Until it has ended, the cluster is paused, " +
				"Flux does not apply it, and the API server may refuse changes.",
			Do: "The message has the command that finishes it. Before the other side has taken over, it also has the command that undoes it. " +
				"Change nothing by hand meanwhile.",
			match: match{stages: []Stage{StageCluster}, texts: []string{`a hand-over is under way: `}},
			examples: []example{{
				StageCluster, "", "",
				"a hand-over is under way: it is in the middle of the transfer of shop/shop, from first to second; first finish it " +
					"(`fleetctl cluster transfer shop`) or undo it (`fleetctl cluster transfer shop --abort`)",
			}},
		},
		{
			ID: "handed-over", Title: "Another management cluster manages it now",
			Means: "This management cluster has handed the cluster over, and has nothing of it any more. The fleet repo here may still declare " +
				"it at the old place.",
			Do: "Ask the other management cluster; the message has the command. If the fleet repo here is behind, `git pull` brings the new " +
				"place. If the change of a transfer is not in Git yet, `fleetctl cluster transfer CLUSTER --to MANAGEMENT --push` finishes it.",
			match: match{stages: []Stage{StageCluster}, texts: []string{`management cluster \S+ manages it now`}},
			examples: []example{{
				StageCluster, "", "",
				"management cluster second manages it now, and first has handed it over; ask there: `fleetctl why shop --management second`",
			}},
		},
		{
			ID: "two-owners", Title: "Two management clusters act on it",
			Means: "Another management cluster has taken the cluster over, and an old copy of this one came back, or both were restored from " +
				"one snapshot. Each undoes the changes of the other. The cluster's own record of its owner (ConfigMap " +
				"`kube-system/fleetctl-owner` in the workload cluster) may tell so, or the mark on the Cluster.",
			Do: "Decide which of them manages the cluster. `fleetctl cluster detach NAME --management OLD` takes it from the other one: it " +
				"deletes nothing. The cluster's own record may be wrong. Look first whether the management cluster that it names has the " +
				"Cluster: `fleetctl status --management OTHER`. If that one does not have it, delete the ConfigMap " +
				"`kube-system/fleetctl-owner` in the workload cluster: this ends a false alarm.",
			match: match{stages: []Stage{StageCluster}, texts: []string{`TWO OWNERS:`}},
			examples: []example{{
				StageCluster, "", "",
				"TWO OWNERS: management cluster second has taken it over (hand-over 2), but this one acts on it, too",
			}, {
				StageCluster, "", "",
				"TWO OWNERS: its own record says that management cluster second has taken it over (hand-over 2), but this one acts on it, too",
			}},
		},
		{
			ID: "paused", Title: "Cluster API leaves it alone: it is paused",
			Means: "The object or its Cluster is paused: by a person, or by a hand-over that was interrupted.",
			Do: "`fleetctl status` shows a hand-over. `fleetctl pivot` finishes a pivot, and `fleetctl pivot --abort` undoes it. Without a " +
				"hand-over, set `spec.paused` of the Cluster to false, or remove the annotation that pauses the object.",
			match:    match{conditions: []string{"Paused"}},
			examples: []example{{StageCluster, "Paused", "Paused", "Cluster spec.paused is set to true"}},
		},
		{
			ID: "no-network", Title: "The nodes have no network",
			Means: "No CNI is installed on the workload cluster, or its pods do not start: nodes stay NotReady.",
			Do: "Add a network with `fleetctl cni add`, and give it to the cluster with `fleetctl cluster flux NAME --cni NETWORK`. If the " +
				"cluster has a network, look at its pods with `fleetctl cluster kubeconfig NAME`.",
			match: match{texts: []string{`cni plugin not initialized`, `NetworkPluginNotReady`, `network is not ready`, `NetworkUnavailable`}},
			examples: []example{{
				StageCluster, "NodeHealthy", "NodeNotHealthy",
				"* Node.Ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns " +
					"error: cni plugin not initialized",
			}},
		},
		{
			ID: "bootstrap-failed", Title: "A machine came up and did not become a node",
			Means: "The machine still boots, or kubeadm on it has failed, or kubeadm cannot reach the control plane. Causes are a wrong image, a " +
				"network without a way out, or a load balancer that does not answer.",
			Do: "Look at the machine's console, or at `/var/log/cloud-init-output.log` on it. For docker, run `docker logs` with the machine's " +
				"name. If the node exists " +
				"and its Machine does not know it, docker's provider looked too early. It waits longer after each try, up to a quarter of an hour. " +
				"`kubectl annotate dockermachine --all --namespace NAMESPACE look-again=$(date +%s) --overwrite` makes it look at once.",
			match: match{
				stages: []Stage{StageCluster, StageProvider},
				texts: []string{
					`BootstrapFailed`, `BootstrapExecSucceeded`, `failed to run kubeadm`, `NodeStartupTimeout`, `Node .* does not exist`,
					`Waiting for a Node with spec\.providerID`, `Waiting for .* to (set|report) spec\.providerID`,
					`Waiting for Cluster control plane to be initialized`,
				},
			},
			examples: []example{
				{StageProvider, "BootstrapExecSucceeded", "BootstrapFailed", "Error: failed to run kubeadm: exit status 1"},
				{StageCluster, "NodeHealthy", "InspectionFailed", "Waiting for Cluster control plane to be initialized"},
				{StageCluster, "NodeHealthy", "NodeInspectionFailed", "Waiting for a Node with spec.providerID docker:////dev-1 to exist"},
			},
		},
		{
			ID: "version-refused", Title: "The cluster cannot go to this Kubernetes version in one step",
			Means: "A minor version is skipped, or the machines are newer than the control plane.",
			Do:    "`fleetctl cluster upgrade NAME` goes one minor version at a time, the control plane first.",
			match: match{
				stages: []Stage{StageCluster, StageProvider, StageRelease},
				texts:  []string{`PreflightCheckFailed`, `KubernetesVersionSkew`, `KubeadmVersionSkew`, `version .*skew`, `cannot skip minor`},
			},
			examples: []example{{
				StageCluster, "MachinesReady", "PreflightCheckFailed",
				"MachineSet version (v1.37.0) and ControlPlane version (v1.35.2) do not conform to the kubernetes version skew policy " +
					"(\"KubernetesVersionSkew\" preflight check failed)",
			}},
		},
		{
			ID: "etcd", Title: "etcd of the workload cluster is not healthy",
			Means: "One member or most members are lost. Cluster API does not change the control plane until they answer.",
			Do: "If most members live, delete the broken Machine: another one takes its place. Otherwise restore etcd from a backup, or make " +
				"the cluster again.",
			match: match{texts: []string{
				`etcd member .*(not healthy|unhealthy|fail|does not)`, `etcd cluster .*(not healthy|unhealthy)`,
				`EtcdMemberHealthy`, `etcd endpoints`,
			}},
			examples: []example{{
				StageProvider, "EtcdClusterHealthy", "NotHealthy",
				"Machine dev-x: etcd member is not healthy: it does not answer",
			}},
		},
		{
			ID: "workload-unreachable", Title: "The management cluster does not reach the workload cluster's API server",
			Means: "The cause is its load balancer, a firewall, a route, or a control plane that does not run. The machines may be healthy.",
			Do: "Get the kubeconfig with `fleetctl cluster kubeconfig NAME`, and test it with kubectl on the machine of the management " +
				"cluster. For a new cluster, wait a minute first.",
			match: match{stages: []Stage{StageCluster, StageProvider}, texts: []string{
				`Remote connection (not established|probe failed)`,
				`ConnectionDown`, `ProbeFailed`, `Connection to the workload cluster`,
			}, conditions: nil},
			examples: []example{{
				StageCluster, "RemoteConnectionProbe", "ProbeFailed",
				"Remote connection probe failed, probe last succeeded at 2026-01-01T00:00:00Z",
			}},
		},
		{
			ID: "node-unhealthy", Title: "A health check has found a machine unhealthy",
			Means: "The machine's node does not report, or somebody has deleted the node, or the machine is gone from its cloud. The " +
				"MachineHealthCheck replaces the machine, unless too many are unhealthy.",
			Do: "Look at the machine in its cloud, and at the kubelet on it. `kubectl get machines --namespace NAMESPACE --watch` shows whether " +
				"another machine takes its place.",
			match: match{stages: []Stage{StageCluster}, texts: []string{`Health check failed`}},
			examples: []example{{
				StageCluster, "HealthCheckSucceeded", "UnhealthyNode",
				"Health check failed: * Condition Ready on Node is reporting status Unknown for more than 5m0s",
			}},
		},
		{
			ID: "unhealthy-machines", Title: "Too many machines are unhealthy to replace them",
			Means: "A MachineHealthCheck stops when more machines are unhealthy than it may replace, because these machines probably have one " +
				"common cause.",
			Do:    "Look for the common cause (a zone, a network, an image) before you raise `unhealthyLessThanOrEqualTo`.",
			match: match{texts: []string{`TooManyUnhealthy`, `Remediation is not allowed`}},
			examples: []example{{
				StageCluster, "RemediationNotAllowed", "TooManyUnhealthy",
				"Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy",
			}},
		},
		{
			ID: "reference-missing", Title: "The Cluster names an object that does not exist",
			Means: "Somebody has deleted the object by hand, or the chart or manifest is incomplete.",
			Do: "`fleetctl validate` names references to missing objects. For a cluster from a chart, Flux makes the object again: `flux " +
				"reconcile helmrelease NAME -n NAMESPACE --force`.",
			match: match{
				stages: []Stage{StageCluster, StageProvider},
				texts:  []string{`does not exist`, `ObjectDeleted`, `ObjectDoesNotExist`, `has been deleted`, `" not found`},
			},
			examples: []example{{StageCluster, "InfrastructureReady", "ObjectDoesNotExist", "AWSCluster does not exist"}},
		},
	}
}
