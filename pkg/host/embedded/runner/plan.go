package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// plan has all that the runner needs to run a Deployment's container as a process.
type plan struct {
	// hash changes when the process must be started anew.
	hash string
	spec process.Spec
	// moved maps the container's ports to ports of this machine.
	moved map[int32]int32
	// fixed are the ports that no flag moves.
	fixed  map[int32]bool
	probes map[string]*corev1.Probe
	pod    *corev1.PodSpec
	grace  time.Duration
	// services are the Services that the command line or environment names.
	services []types.NamespacedName
	image    images.Image
}

// port is the port of this machine for a port of the container.
func (p *plan) port(container int32) int32 {
	if actual, ok := p.moved[container]; ok {
		return actual
	}
	return container
}

// planner makes one plan.
type planner struct {
	*Runner
	d   *appsv1.Deployment
	rec *record
	src *sources
	pod podInfo
	c   *corev1.Container

	mounts   mounts
	services []types.NamespacedName
}

// plan brings the Deployment's image, folders and credentials up to date and returns the plan. Errors: a *refusal; a *missingError, if an
// object does not exist yet; another error, after which a new try may succeed.
func (r *Runner) plan(ctx context.Context, d *appsv1.Deployment, rec *record) (*plan, error) {
	if err := check(d); err != nil {
		return nil, err
	}
	template := &d.Spec.Template
	p := &planner{
		Runner: r, d: d, rec: rec, src: newSources(r.reader), c: &template.Spec.Containers[0],
		pod: podInfo{
			Name: podName(d), Namespace: d.Namespace, UID: rec.podUID, ServiceAccount: accountOf(&template.Spec),
			Labels: template.Labels, Annotations: template.Annotations,
		},
	}
	img, err := p.getImage(ctx)
	if err != nil {
		return nil, err
	}
	env, err := p.folders(ctx)
	if err != nil {
		return nil, err
	}
	return p.command(ctx, img, env)
}

// podName is the name that the process gets as its pod's. It stays the same until the template changes.
func podName(d *appsv1.Deployment) string {
	return d.Name + "-" + hashOf(d.Spec.Template)[:10]
}

func hashOf(values ...any) string {
	raw, err := json.Marshal(values)
	if err != nil { // impossible for an API type
		raw = fmt.Append(nil, values...)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// getImage gets the container's image under its pull policy, with the pull secrets of the pod and of its ServiceAccount.
func (p *planner) getImage(ctx context.Context) (images.Image, error) {
	policy := p.c.ImagePullPolicy
	pull := images.Pull{Never: policy == corev1.PullNever, Always: policy == corev1.PullAlways && p.rec.pulled != p.d.Generation}
	if !pull.Never {
		keychain, err := p.keychain(ctx)
		if err != nil {
			return images.Image{}, err
		}
		pull.Keychain = keychain
	}
	img, err := p.store.Get(ctx, p.c.Image, pull)
	if err == nil {
		p.rec.pulled = p.d.Generation
	}
	return img, err
}

func (p *planner) keychain(ctx context.Context) (images.Keychain, error) {
	secrets := p.d.Spec.Template.Spec.ImagePullSecrets
	owner := &corev1.ServiceAccount{}
	if err := p.reader.Get(ctx, types.NamespacedName{Namespace: p.d.Namespace, Name: p.pod.ServiceAccount}, owner); err == nil {
		secrets = append(slices.Clip(secrets), owner.ImagePullSecrets...)
	}
	var configs [][]byte
	for _, s := range secrets {
		ref := objectRef{"Secret", p.d.Namespace, s.Name}
		content, ok, err := p.src.value(ctx, ref, corev1.DockerConfigJsonKey, true)
		if err != nil {
			return nil, err
		}
		if ok { // the kubelet, too, ignores a missing pull secret
			configs = append(configs, []byte(content))
		}
	}
	if len(configs) == 0 {
		return nil, nil
	}
	return images.KeychainFromDockerConfig(configs...)
}

// folders makes the credentials and volumes, and returns the manifest's environment.
func (p *planner) folders(ctx context.Context) (map[string]string, error) {
	spec := &p.d.Spec.Template.Spec
	if automount(spec) {
		if err := p.rec.creds.refresh(ctx, p.account(), p.config); err != nil {
			return nil, err
		}
	}
	env, err := environment(ctx, p.src, p.pod, p.c)
	if err != nil {
		return nil, err
	}
	v := volumes{dir: p.rec.dir, src: p.src, pod: p.pod, tokens: func(ctx context.Context, audience string, seconds int64) ([]byte, error) {
		return p.rec.tokens.get(ctx, p.account(), audience, seconds)
	}}
	if p.mounts, err = v.make(ctx, spec, env); err != nil {
		return nil, err
	}
	return env, p.webIdentity(ctx, &v, env)
}

func (p *planner) account() account {
	return account{p.manager.GetClient(), p.d.Namespace, p.pod.ServiceAccount, p.opts.TokenRenewal}
}

func automount(spec *corev1.PodSpec) bool {
	return spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken
}
