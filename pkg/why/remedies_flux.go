package why

// delivery is the way of a commit to the management cluster.
func delivery() []Stage {
	return []Stage{StageSource, StageKustomization, StageRelease, StageWorkloadFlux}
}

// fluxRemedies are for faults that keep a commit from the management cluster, or from a workload cluster's Flux.
func fluxRemedies() []Remedy {
	return []Remedy{
		{
			ID: "commit-not-fetched", Title: "Flux has another commit than this machine",
			Means: "The commit is not pushed, or Flux has not fetched it yet, or others have pushed another commit meanwhile.",
			Do: "`git status` tells whether it is pushed, and `git push` pushes it. Flux looks every minute. If the environment follows a " +
				"channel, `fleetctl promote --status` tells what waits.",
			match:    match{stages: []Stage{StageCommit}, codes: []string{codeNotFetched}},
			examples: []example{{StageCommit, "", codeNotFetched, "Flux has fetched 0123abcd of main, and this machine has 89efcdab"}},
		},
		{
			ID: "suspended", Title: "Somebody has suspended it",
			Means: "Flux does not change a suspended object. A person has suspended it, Git says so, or a command of fleetctl has suspended it " +
				"and was interrupted.",
			Do: "If Git says so, run `fleetctl cluster resume NAME`, or resume its environment, feature or channel. If a person did so on the " +
				"cluster, run the same with `--now`. If fleetctl has suspended it, run `fleetctl init`.",
			match: match{stages: delivery(), texts: []string{"it is suspended: Flux does not", "it is suspended, by fleetctl"}},
			examples: []example{
				{StageRelease, "", "", "it is suspended: Flux does not reconcile it"},
				{StageSource, "", "", "it is suspended, by fleetctl: Flux does not reconcile it"},
			},
		},
		{
			ID: "revision-recorded-wrong", Title: "Flux has recorded another revision than it has applied",
			Means: "A channel went to a tag and back while Flux was applying it. Flux has applied the older tag again, and still names the newer " +
				"one. Objects that depend on this one wait until its interval is over, which is at most an hour.",
			Do: "Make Flux look again with the command that `fleetctl status` shows: `kubectl -n NAMESPACE annotate --overwrite " +
				"kustomization NAME reconcile.fluxcd.io/requestedAt=$(date +%s)`.",
			match: match{stages: delivery(), texts: []string{"but has recorded"}},
			examples: []example{{
				StageWorkloadFlux, "", "",
				"Flux has applied v0.1.0@sha1:0123456789ab, but has recorded v0.1.1@sha1:89ab01234567: what depends on it waits",
			}},
		},
		{
			ID: "git-host-key", Title: "The SSH server shows an unknown host key",
			Means: "The server's key has changed, or somebody intercepts the connection between Flux and the server.",
			Do: "Ask the operator of the server for its fingerprint. If the fingerprint is right, run `fleetctl init`: it shows the key, and " +
				"writes the key into Flux's Secret once you have confirmed it.",
			match: match{stages: []Stage{StageSource}, texts: []string{
				`knownhosts: key`,
				`host key (mismatch|verification failed)`, `key is unknown`,
			}},
			examples: []example{{
				StageSource, "Ready", "GitOperationFailed",
				"failed to checkout and determine revision: unable to clone 'ssh://git@git.example.com/fleet.git': ssh: handshake failed: " +
					"knownhosts: key mismatch",
			}},
		},
		{
			ID: "git-authentication", Title: "Flux may not read the Git repository",
			Means: "Its token or key has expired, was revoked, or is for another repository.",
			Do: "Make a new token that may only read, and run `fleetctl init --flux-token-file FILE`. With SSH, add the deploy key that " +
				"`fleetctl init` prints to the repository.",
			match: match{stages: []Stage{StageSource, StageWorkloadFlux}, texts: []string{
				`authentication required`, `authorization failed`, `unable to authenticate`, `invalid (auth|credentials)`, `repository not found`,
				`\b40[13]\b.*(git|repo)`, `failed to get secret.*flux-system`,
			}},
			examples: []example{
				{
					StageSource, "Ready", "GitOperationFailed",
					"failed to checkout and determine revision: unable to list remote for 'https://git.example.com/fleet.git': authentication " +
						"required: Unauthorized",
				},
				{StageSource, "Ready", "AuthenticationError", "failed to get secret 'flux-system/flux-system': Secret \"flux-system\" not found"},
				{
					StageSource, "Ready", "GitOperationFailed",
					"unable to clone: ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods " +
						"remain",
				},
			},
		},
		{
			ID: "git-branch", Title: "The branch or tag does not exist",
			Means: "The source follows a branch, or tags, that the remote does not have.",
			Do: "Push the branch (`git push -u origin BRANCH`), or set `spec.git.branch` in fleet.yaml. A channel of tags has no tag before " +
				"its first `fleetctl promote`.",
			match: match{stages: []Stage{StageSource}, texts: []string{
				`couldn't find remote ref`, `no match found for semver`,
				`reference not found`,
			}},
			examples: []example{{
				StageSource, "Ready", "GitOperationFailed",
				"failed to checkout and determine revision: unable to clone 'https://git.example.com/fleet.git': couldn't find remote ref " +
					"\"refs/heads/release\"",
			}},
		},
		{
			ID: "source-unreachable", Title: "The server of the source does not answer",
			Means: "The management cluster cannot resolve the server's name, no program listens there, or the management cluster does not trust " +
				"the certificate.",
			Do: "Test the connection from the management cluster: in a pod that you start with `kubectl run`, or for an embedded host with " +
				"`curl` on its " +
				"machine. Without a network, see [work without a network](tasks/offline.md). Name a private certificate authority in " +
				"`spec.git.caFile`. " +
				"If the fleet repo has no remote, this machine serves it: `fleetctl init` serves it again.",
			match: match{stages: []Stage{StageSource}, texts: []string{
				`dial tcp`, `no such host`, `connection refused`, `i/o timeout`, `x509:`,
				`tls:`, `context deadline exceeded`,
			}},
			examples: []example{{
				StageSource, "Ready", "GitOperationFailed",
				"failed to checkout and determine revision: unable to list remote for 'http://127.0.0.1:9000/fleet.git': dial tcp 127.0.0.1:9000: " +
					"connect: connection refused",
			}},
		},
		{
			ID: "path-not-found", Title: "A folder that Flux applies is not in the commit",
			Means: "A Flux Kustomization names a folder that was moved or deleted, or that `.sourceignore` hides.",
			Do:    "`fleetctl validate` names the line. Bring the folder back, or remove the Kustomization.",
			match: match{
				stages: []Stage{StageKustomization, StageWorkloadFlux},
				texts:  []string{`kustomization path not found`, `stat .*: no such file or directory`},
			},
			examples: []example{{
				StageKustomization, "Ready", "ArtifactFailed",
				"kustomization path not found: stat /tmp/kustomization-12/providers/docker/v1/clusters/dev: no such file or directory",
			}},
		},
		{
			ID: "decryption", Title: "A secret in the repo cannot be decrypted",
			Means: "Flux on this management cluster lacks the age key that the file was encrypted for.",
			Do: "`fleetctl secret rotate` encrypts the files for the keys in `.sops.yaml`. `fleetctl init` puts the key of this machine into " +
				"the cluster. See [secrets](tasks/secrets.md).",
			match: match{
				stages: []Stage{StageKustomization, StageWorkloadFlux},
				texts:  []string{`cannot get sops data key`, `decryption failed`, `failed to decrypt`, `sops`},
			},
			examples: []example{{
				StageKustomization, "Ready", "BuildFailed",
				"decryption failed for 'cloud-credentials': cannot get sops data key: Error getting data key: 0 successful groups required, got 0",
			}},
		},
		{
			ID: "kind-not-installed", Title: "The management cluster does not know the kind",
			Means: "A provider, or the CRD of a feature, is not installed. Or the installed version no longer serves the version of the kind in " +
				"Git.",
			Do: "`fleetctl provider list` shows the providers in fleet.yaml, `fleetctl provider add NAME` adds a provider, and `fleetctl " +
				"init` installs it. For a feature, install its CRDs first.",
			match: match{
				stages: append(delivery(), StageProvider, StageCluster),
				texts:  []string{`no matches for kind`, `the server could not find the requested resource`, `no kind .* is registered`},
			},
			examples: []example{{
				StageRelease, "Ready", "InstallFailed",
				"Helm install failed for release dev/dev with chart aws-kubeadm@0.1.0: unable to build kubernetes objects from release manifest: " +
					"resource mapping not found: no matches for kind \"AWSCluster\" in version \"infrastructure.cluster.x-k8s.io/v1beta2\"",
			}},
		},
		{
			ID: "webhook", Title: "A webhook does not answer",
			Means: "A provider's controller or cert-manager does not run, or the certificate of the webhook does not exist yet. Until the " +
				"webhook answers, nobody can write objects of its kinds.",
			Do: "`fleetctl status` names the provider that does not run. `fleetctl host logs NAME` shows its log on an embedded host, and " +
				"`kubectl logs` elsewhere. `fleetctl init` completes a provider that is half installed.",
			match: match{texts: []string{`failed calling webhook`, `failed to call webhook`, `conversion webhook for .* failed`}},
			examples: []example{
				{
					StageKustomization, "Ready", "ReconciliationFailed",
					"Cluster/dev/dev dry-run failed: Internal error occurred: failed calling webhook \"default.cluster.cluster.x-k8s.io\": Post " +
						"\"https://capi-webhook-service.capi-system.svc:443/mutate\": dial tcp 10.96.12.3:443: connect: connection refused",
				},
				{
					StageRelease, "Ready", "UpgradeFailed",
					"conversion webhook for infrastructure.cluster.x-k8s.io/v1beta1, Kind=AWSCluster failed: no endpoints available for service " +
						"\"capa-webhook-service\"",
				},
			},
		},
		{
			ID: "immutable", Title: "Git asks for a change that cannot be made in place",
			Means: "The field of an existing object cannot change. A template needs a new name for such a change, and a cluster has to be made " +
				"again.",
			Do: "`fleetctl diff` shows the change, and `fleetctl revert` undoes it. If you need the change, make a second cluster and " +
				"move the work there.",
			match: match{stages: delivery(), texts: []string{`field is immutable`, `is immutable`, `Forbidden: cannot be modified`}},
			examples: []example{{
				StageRelease, "Ready", "UpgradeFailed",
				"Helm upgrade failed for release dev/dev: admission webhook \"validation.awscluster.infrastructure.cluster.x-k8s.io\" denied the " +
					"request: spec.region: Invalid value: \"eu-west-1\": field is immutable",
			}},
		},
		{
			ID: "values-refused", Title: "The chart rejects the cluster's values",
			Means: "A value is missing, misspelt, or outside of what the chart's schema allows.",
			Do:    "`fleetctl validate` names the file and the line.",
			match: match{stages: []Stage{StageRelease}, texts: []string{
				`values don't meet the specifications of the schema`,
				`additional properties? .* not allowed`, `could not resolve values`,
			}},
			examples: []example{{
				StageRelease, "Ready", "InstallFailed",
				"Helm install failed for release dev/dev with chart docker@0.1.0: values don't meet the specifications of the schema(s) in the " +
					"following chart(s): docker: at '': additional properties 'replicaz' not allowed",
			}},
		},
		{
			ID: "release-stuck", Title: "Helm's release is stuck",
			Means: "An attempt was interrupted, or failed too often. helm-controller makes no further attempt by itself.",
			Do: "First correct the fault that the message names. Then run `flux reconcile helmrelease NAME -n NAMESPACE --reset`, or, without " +
				"the flux program, commit a change of the cluster's file.",
			match: match{stages: []Stage{StageRelease}, texts: []string{
				`another operation \(install/upgrade/rollback\) is in progress`,
				`RetriesExceeded`, `retries exhausted`, `after \d+ attempt`,
			}},
			examples: []example{
				{StageRelease, "Stalled", "RetriesExceeded", "Failed to install after 1 attempt(s)"},
				{StageRelease, "Ready", "UpgradeFailed", "another operation (install/upgrade/rollback) is in progress"},
			},
		},
		{
			ID: "chart-not-found", Title: "The chart does not exist",
			Means: "The folder of the chart is not in the commit, or the registry has no such chart or version.",
			Do:    "`fleetctl chart list` shows the charts of the repo; `fleetctl chart update` brings a copy back.",
			match: match{
				stages: []Stage{StageRelease, StageSource},
				texts:  []string{`no chart (version|name) found`, `chart .*not found`, `no such file or directory.*charts/`, `there is no HelmChart`},
			},
			examples: []example{{
				StageRelease, "Ready", "ArtifactFailed",
				"HelmChart 'flux-system/dev-docker' is not ready: invalid chart reference: no chart name found",
			}},
		},
		{
			ID: "build-failed", Title: "The folder cannot be built, or cannot be applied",
			Means: "A kustomization.yaml names a missing file, two files have the same object, or the API server refuses an object.",
			Do:    "`fleetctl validate` names the file and the line; `fleetctl render` shows what Flux would apply.",
			match: match{
				stages: []Stage{StageKustomization, StageWorkloadFlux},
				texts:  []string{`kustomize build failed`, `accumulating resources`, `dry-run failed`, `is invalid`, `may not add resource`},
			},
			examples: []example{
				{
					StageKustomization, "Ready", "BuildFailed",
					"kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'web.yaml''",
				},
				{
					StageKustomization, "Ready", "ReconciliationFailed",
					"ConfigMap/default/Not_A_Name dry-run failed (Invalid): ConfigMap \"Not_A_Name\" is invalid: metadata.name: Invalid value",
				},
			},
		},
		{
			ID: "not-made", Title: "Flux has not made it",
			Means: "Flux has not applied the commit that declares the cluster. The commit is not pushed, the channel of the environment is at an " +
				"older tag, or no Flux Kustomization applies the folder.",
			Do: "`fleetctl promote --status` shows the revision of each environment, `fleetctl environment wire` lets Flux apply its folders, " +
				"and `fleetctl status` shows the revision that Flux has applied.",
			match: match{codes: []string{codeAbsent}},
			examples: []example{
				{StageRelease, "", codeAbsent, "Flux has not made it; providers/docker/v1/clusters/dev/dev/cluster.yaml declares it"},
			},
		},
	}
}
