package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/egress"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

const (
	adminConfig             = "admin.kubeconfig"
	controllerManagerConfig = "controller-manager.kubeconfig"
	egressConfig            = "egress.yaml"
)

// controllers are those of kube-controller-manager that something here needs: namespaces that end, owners whose children
// go with them, accounts with tokens and the authority's certificate in each namespace, and roles made of others. What
// works on Deployments, Pods and nodes is left out: the runner does that.
const controllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller," +
	"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller"

// etcdArgs: TLS with client certificates although it is on loopback, because loopback is everybody's on this machine.
func (c *ControlPlane) etcdArgs() []string {
	client, peer := "https://"+address(c.ports.Etcd), "https://"+address(c.ports.EtcdPeer)
	args := []string{
		"--name=embedded", "--data-dir=" + c.path(dataDir), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=embedded=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + c.keys.cert(authorityName),
		"--cert-file=" + c.keys.cert(servingName), "--key-file=" + c.keys.key(servingName),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.keys.cert(authorityName),
		"--peer-cert-file=" + c.keys.cert(servingName), "--peer-key-file=" + c.keys.key(servingName),
	}
	if !c.options.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

// ownIssuer is one that nobody but the cluster itself can ask.
const ownIssuer = "https://kubernetes.default.svc.cluster.local"

// issuerArgs make the API server issue tokens in the name of issuer, and take those that it has issued in its own before, or will again.
func issuerArgs(issuer string) []string {
	if issuer == "" {
		return []string{"--service-account-issuer=" + ownIssuer}
	}
	return []string{
		"--service-account-issuer=" + issuer, "--service-account-issuer=" + ownIssuer, "--api-audiences=" + issuer + "," + ownIssuer,
		"--service-account-jwks-uri=" + issuer + "/openid/v1/jwks",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--bind-address=" + loopback, "--advertise-address=" + loopback, fmt.Sprintf("--secure-port=%d", c.ports.APIServer),
		"--tls-cert-file=" + c.keys.cert(servingName), "--tls-private-key-file=" + c.keys.key(servingName),
		"--client-ca-file=" + c.keys.cert(authorityName),
		"--etcd-servers=https://" + address(c.ports.Etcd), "--etcd-cafile=" + c.keys.cert(authorityName),
		"--etcd-certfile=" + c.keys.cert(etcdClientName), "--etcd-keyfile=" + c.keys.key(etcdClientName),
		"--authorization-mode=RBAC",
		// Loopback is everybody's on this machine: who shows nothing gets nothing, not the version, not even whether it is ready.
		"--anonymous-auth=false",
		"--service-account-key-file=" + c.keys.cert(serviceAccountName),
		"--service-account-signing-key-file=" + c.keys.key(serviceAccountName),
		"--service-cluster-ip-range=10.96.0.0/16",
		// The Service kubernetes would get an endpoint on loopback, which the API does not take.
		"--endpoint-reconciler-type=none",
		// A Deployment that wants more than a process is taken as it is, and refused by the runner, by name.
		"--allow-privileged=true",
		"--profiling=false",
		// With it, each served version of each CRD has a cache of its own, which asks the conversion webhook about every write although
		// nobody wants that version; without it etcd, which is beside it, answers. It was 40 % of the API server's memory.
		"--watch-cache=false",
	}
	args = append(args, issuerArgs(c.options.Issuer)...)
	if c.options.EgressSocket != "" {
		args = append(args, "--egress-selector-config-file="+c.path(egressConfig))
	}
	return args
}

func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path(controllerManagerConfig), "--controllers=" + controllers,
		"--root-ca-file=" + c.keys.cert(authorityName),
		"--service-account-private-key-file=" + c.keys.key(serviceAccountName),
		"--use-service-account-credentials=true",
		"--secure-port=0", // nobody asks it anything
		"--leader-elect=false", "--profiling=false", "--kube-api-qps=100", "--kube-api-burst=200",
	}
}

// writeConfigs writes the files that name ports and certificates.
func (c *ControlPlane) writeConfigs() error {
	admin := c.kubeconfig(adminName)
	if err := clientcmdapi.FlattenConfig(admin); err != nil { // it is handed out, so it stands alone
		return err
	}
	if err := writeKubeconfig(c.path(adminConfig), admin); err != nil {
		return err
	}
	// This one names files: they are read again when they are renewed.
	if err := writeKubeconfig(c.path(controllerManagerConfig), c.kubeconfig(controllerManagerName)); err != nil {
		return err
	}
	if c.options.EgressSocket == "" {
		return nil
	}
	content, err := egress.Config(c.options.EgressSocket)
	if err != nil {
		return err
	}
	return atomicfile.Write(c.path(egressConfig), content, 0o600)
}

func (c *ControlPlane) kubeconfig(user string) *clientcmdapi.Config {
	const name = "embedded"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.server(), CertificateAuthority: c.keys.cert(authorityName)}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: c.keys.cert(user), ClientKey: c.keys.key(user)}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return config
}

func writeKubeconfig(path string, config *clientcmdapi.Config) error {
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, content, 0o600)
}

// Kubeconfig reads the administrator's kubeconfig of the control plane in a folder; fs.ErrNotExist where none ever ran.
func Kubeconfig(dir string) ([]byte, error) {
	return os.ReadFile((&ControlPlane{dir: dir}).path(adminConfig))
}

// etcdReady asks etcd for its health.
func (c *ControlPlane) etcdReady() (func(context.Context) error, error) {
	authority, err := os.ReadFile(c.keys.cert(authorityName))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the control plane's certificate authority cannot be read")
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: c.options.Network.Dial,
		TLSClientConfig: &tls.Config{
			RootCAs: roots, MinVersion: tls.VersionTLS12,
			// Read anew each time: the certificate may be renewed while etcd is down.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(c.keys.cert(etcdClientName), c.keys.key(etcdClientName))
				return &pair, err
			},
		},
	}}
	url := "https://" + address(c.ports.Etcd) + "/health"
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("etcd answers %s", res.Status)
		}
		return nil
	}, nil
}

// apiReady asks the API server whether it is ready, as the administrator. That includes its roles.
func (c *ControlPlane) apiReady() func(context.Context) error {
	return func(ctx context.Context) error {
		// Read anew each time, as above.
		kubeconfig, err := c.Kubeconfig()
		if err != nil {
			return err
		}
		client, err := apiserver.New(kubeconfig)
		if err != nil {
			return err
		}
		return client.Ready(ctx)
	}
}
