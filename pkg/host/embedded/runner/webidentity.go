package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In a cluster, the webhooks of two clouds give pods the token of their ServiceAccount for the cloud, and the variables by which the
// cloud's SDK finds the token. No webhook sees a process, so the runner does it for the same labels and annotations.
const (
	awsRole      = "eks.amazonaws.com/role-arn"
	awsAudience  = "eks.amazonaws.com/audience"
	awsSeconds   = "eks.amazonaws.com/token-expiration"
	awsTokenFile = "AWS_WEB_IDENTITY_TOKEN_FILE" //nolint:gosec // a variable's name

	azureUse       = "azure.workload.identity/use" // a label of pods
	azureClient    = "azure.workload.identity/client-id"
	azureTenant    = "azure.workload.identity/tenant-id"
	azureAudience  = "api://AzureADTokenExchange"
	azureTokenFile = "AZURE_FEDERATED_TOKEN_FILE"
)

// The range of a token's validity that the API server accepts, and the webhooks' defaults.
const (
	shortestToken     = 600
	awsTokenSeconds   = 86400
	azureTokenSeconds = 3600
)

// webIdentity adds the variables of web identity on AWS, and of workload identity on Azure, to the manifest's environment. Variables of the
// manifest stay as they are.
func (p *planner) webIdentity(ctx context.Context, v *volumes, env map[string]string) error {
	owner := &corev1.ServiceAccount{}
	key := types.NamespacedName{Namespace: p.d.Namespace, Name: p.pod.ServiceAccount}
	err := p.reader.Get(ctx, key, owner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ServiceAccount %s/%s: %w", key.Namespace, key.Name, err)
	}
	if role := owner.Annotations[awsRole]; role != "" && env["AWS_ROLE_ARN"] == "" && env[awsTokenFile] == "" {
		seconds, err := strconv.ParseInt(owner.Annotations[awsSeconds], 10, 64)
		if err != nil || seconds < shortestToken {
			seconds = awsTokenSeconds
		}
		file, err := p.tokenFile(ctx, v, "aws", cmp.Or(owner.Annotations[awsAudience], "sts.amazonaws.com"), seconds)
		if err != nil {
			return err
		}
		env["AWS_ROLE_ARN"], env[awsTokenFile] = role, file
	}
	if p.pod.Labels[azureUse] != "true" {
		return nil
	}
	if env[azureTokenFile] == "" {
		file := azureMount(&p.d.Spec.Template.Spec, p.c)
		if file == "" {
			var err error
			if file, err = p.tokenFile(ctx, v, "azure", azureAudience, azureTokenSeconds); err != nil {
				return err
			}
		}
		env[azureTokenFile] = file
	}
	for name, annotation := range map[string]string{"AZURE_CLIENT_ID": azureClient, "AZURE_TENANT_ID": azureTenant} {
		if value := owner.Annotations[annotation]; value != "" && env[name] == "" {
			env[name] = value
		}
	}
	return nil
}

// tokenFile writes a token of the ServiceAccount to a file of its own, and returns the path of the file. The runner renews the token as it
// renews those of volumes.
func (p *planner) tokenFile(ctx context.Context, v *volumes, cloud, audience string, seconds int64) (string, error) {
	token, err := v.tokens(ctx, audience, seconds)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(p.rec.dir, "webidentity", cloud)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(folder, "token"), writeAtomically(folder, map[string][]byte{"token": token})
}

// azureMount is the path in the container of a projected token for Azure, or "". Azure's provider mounts one at the path that is compiled
// into its program.
func azureMount(pod *corev1.PodSpec, c *corev1.Container) string {
	for _, volume := range pod.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, s := range volume.Projected.Sources {
			if s.ServiceAccountToken == nil || s.ServiceAccountToken.Audience != azureAudience {
				continue
			}
			for _, m := range c.VolumeMounts {
				if m.Name == volume.Name && m.SubPath == "" && m.SubPathExpr == "" {
					return path.Join(m.MountPath, s.ServiceAccountToken.Path)
				}
			}
		}
	}
	return ""
}
