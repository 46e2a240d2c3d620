//go:build e2e && clouds

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// plane is what runs on one machine of a control plane: etcd, kube-apiserver and kube-controller-manager, with the cluster's own
// authorities, at the machine's own address and with everybody's usual ports.
type plane struct {
	machine machine
	dir     string
	pki     pkiDir
	kubelet *httptest.Server
	// egress is the file that tells the API server of the way to Services, "" where there is none.
	egress string
	// running in the order in which they were started.
	running []*process.Process
}

// startPlane starts all of it. other is the address of another machine of the same control plane, or ""; egress is plane.egress.
func startPlane(ctx context.Context, dir string, m machine, d *bootData, serviceSubnet, other, egress string) (_ *plane, err error) {
	endpoint, _, err := net.SplitHostPort(d.endpoint())
	if err != nil {
		return nil, err
	}
	// What a try before this one left is none of this one's.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	p := &plane{machine: m, dir: dir, egress: egress}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if p.pki, err = newPKI(filepath.Join(dir, "pki"), d.pki(), m.Address, "127.0.0.1", endpoint); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := p.startEtcd(ctx, other); err != nil {
		return nil, err
	}
	if err := p.startAPIServer(ctx, serviceSubnet); err != nil {
		return nil, err
	}
	if err := p.startControllers(ctx); err != nil {
		return nil, err
	}
	p.kubelet, err = startKubelet(m.Address)
	return p, err
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) api() string { return net.JoinHostPort(p.machine.Address, "6443") }

func (p *plane) startAPIServer(ctx context.Context, serviceSubnet string) error {
	args := []string{
		"--bind-address=" + p.machine.Address, "--advertise-address=" + p.machine.Address, "--secure-port=6443",
		"--endpoint-reconciler-type=none", // an endpoint on loopback is not taken
		"--tls-cert-file=" + p.pki.cert(apiServerPair), "--tls-private-key-file=" + p.pki.key(apiServerPair),
		"--client-ca-file=" + p.pki.cert(clusterAuthority), "--enable-bootstrap-token-auth", "--authorization-mode=Node,RBAC",
		"--etcd-servers=" + clientURL(p.machine.Address), "--etcd-cafile=" + p.pki.cert(etcdAuthority),
		"--etcd-certfile=" + p.pki.cert(etcdClientPair), "--etcd-keyfile=" + p.pki.key(etcdClientPair),
		"--kubelet-client-certificate=" + p.pki.cert(kubeletClientPair), "--kubelet-client-key=" + p.pki.key(kubeletClientPair),
		"--kubelet-preferred-address-types=ExternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + filepath.Join(string(p.pki), "sa.pub"), "--service-account-signing-key-file=" + p.pki.key("sa"),
		"--service-cluster-ip-range=" + serviceSubnet, "--allow-privileged=true", "--profiling=false",
	}
	if p.egress != "" {
		args = append(args, "--egress-selector-config-file="+p.egress)
	}
	return p.start(ctx, "kube-apiserver", args, func(ctx context.Context) error {
		c, err := p.client()
		if err != nil {
			return err
		}
		// Also as soon as the roles are there, and kube-system.
		return c.Get(ctx, kube.Key{Name: "kube-system"}, &corev1.Namespace{})
	})
}

// startControllers starts the controllers that need no kubelet.
func (p *plane) startControllers(ctx context.Context) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["own"] = &clientcmdapi.Cluster{Server: "https://" + p.api(), CertificateAuthority: p.pki.cert(clusterAuthority)}
	config.AuthInfos["own"] = &clientcmdapi.AuthInfo{ClientCertificate: p.pki.cert(managerPair), ClientKey: p.pki.key(managerPair)}
	config.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "own"}
	config.CurrentContext = "own"
	if err := clientcmd.WriteToFile(*config, p.path("controller-manager.kubeconfig")); err != nil {
		return err
	}
	return p.start(ctx, "kube-controller-manager", []string{
		"--kubeconfig=" + p.path("controller-manager.kubeconfig"), "--leader-elect=true", "--use-service-account-credentials=true",
		"--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller," +
			"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller",
		"--root-ca-file=" + p.pki.cert(clusterAuthority), "--service-account-private-key-file=" + p.pki.key("sa"),
		"--secure-port=0", "--profiling=false",
	}, nil)
}

// start runs a program until the machine ends, or this process.
func (p *plane) start(ctx context.Context, name string, args []string, ready func(context.Context) error) error {
	run, err := process.Start(ctx, process.Spec{
		Name: name, Path: filepath.Join(os.Getenv(envPrograms), name), Args: args, Dir: p.dir, Env: []string{"GOGC=50", "HOME=" + p.dir},
		LogFile: p.path(name + ".log"), Ready: ready,
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, lastLines(p.path(name+".log")))
	}
	p.running = append(p.running, run)
	return nil
}

func lastLines(file string) string {
	content, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// client may do everything, at this machine's own API server.
func (p *plane) client() (*kube.Client, error) {
	return kube.NewForConfig(&rest.Config{Host: "https://" + p.api(), TLSClientConfig: rest.TLSClientConfig{
		CAFile: p.pki.cert(clusterAuthority), CertFile: p.pki.cert(adminPair), KeyFile: p.pki.key(adminPair),
	}}, kube.Options{Timeout: 10 * time.Second})
}

// config is that of an administrator of the cluster at an endpoint. It needs no file, and so outlives the machine.
func (p *plane) config(endpoint string) (*rest.Config, error) {
	config := &rest.Config{Host: "https://" + endpoint}
	for file, content := range map[string]*[]byte{
		p.pki.cert(clusterAuthority): &config.CAData, p.pki.cert(adminPair): &config.CertData, p.pki.key(adminPair): &config.KeyData,
	} {
		var err error
		if *content, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// stop ends the machine as a switch does.
func (p *plane) stop() error {
	if p.kubelet != nil {
		p.kubelet.CloseClientConnections()
		p.kubelet.Close()
		p.kubelet = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	for _, run := range p.running {
		errs = append(errs, run.Stop(ctx, 0))
	}
	p.running = nil
	return errors.Join(errs...)
}
