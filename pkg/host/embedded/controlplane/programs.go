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

// controllers are the controllers of kube-controller-manager that Cluster API and Flux need: deletion of namespaces, garbage
// collection, service accounts with their tokens, the authority's certificate in each namespace, and aggregated roles. Controllers
// of Deployments, Pods and nodes are left out, because the runner takes their place.
const controllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller," +
	"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller"

// etcdArgs are etcd's arguments. etcd asks for client certificates even on loopback, because every user of the machine reaches loopback.
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

// ownIssuer is the internal issuer, which only the cluster itself can reach.
const ownIssuer = "https://kubernetes.default.svc.cluster.local"

// issuerArgs make the API server issue tokens in the name of issuer. It goes on to accept tokens in the name of ownIssuer.
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
		// Every user of the machine reaches loopback. A client without credentials learns nothing, not even the version or readiness.
		"--anonymous-auth=false",
		"--service-account-key-file=" + c.keys.cert(serviceAccountName),
		"--service-account-signing-key-file=" + c.keys.key(serviceAccountName),
		"--service-cluster-ip-range=10.96.0.0/16",
		// The Service kubernetes would get an endpoint on loopback, which the API refuses.
		"--endpoint-reconciler-type=none",
		// The API server accepts privileged Deployments, so that the runner can refuse them with the name of the field.
		"--allow-privileged=true",
		"--profiling=false",
		// A watch cache per served version of each CRD was 40 % of the API server's memory. Each of them asks the conversion webhook about
		// every write, even if no client reads that version. Without the caches, etcd on the same machine answers.
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
		"--secure-port=0", // no client asks the controller manager
		"--leader-elect=false", "--profiling=false", "--kube-api-qps=100", "--kube-api-burst=200",
	}
}

// writeConfigs writes the files that name ports and certificates.
func (c *ControlPlane) writeConfigs() error {
	admin := c.kubeconfig(adminName)
	if err := clientcmdapi.FlattenConfig(admin); err != nil { // users get this kubeconfig, so it must name no files
		return err
	}
	if err := writeKubeconfig(c.path(adminConfig), admin); err != nil {
		return err
	}
	// This kubeconfig names files, so that the controller manager follows renewed certificates.
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

// Kubeconfig reads the administrator's kubeconfig of the control plane in dir. The error is fs.ErrNotExist if none has run there.
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
			// Read the certificate each time, because it may be renewed while etcd is down.
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
		// Read the certificate each time, because it may be renewed while the API server is down.
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
