//go:build e2e && clouds

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// bootData are the boot data of a machine: files, and the configuration of kubeadm in them.
type bootData struct {
	// files by their path.
	files map[string]string
	// cluster is kubeadm's configuration of the cluster, of its first machine only; clusterText is the same as it was given.
	cluster     *clusterConfiguration
	clusterText string
	node        nodeRegistration
	// join is nil for the first machine of a cluster.
	join *joinConfiguration
}

// The parts of kubeadm's configuration that decide something here.
type clusterConfiguration struct {
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	KubernetesVersion    string `json:"kubernetesVersion"`
	Networking           struct {
		ServiceSubnet string `json:"serviceSubnet"`
	} `json:"networking"`
}

type nodeRegistration struct {
	Name             string          `json:"name"`
	KubeletExtraArgs []argument      `json:"kubeletExtraArgs"`
	Taints           *[]corev1.Taint `json:"taints"`
}

type argument struct{ Name, Value string }

type joinConfiguration struct {
	Discovery struct {
		BootstrapToken struct {
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			Token             string   `json:"token"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	ControlPlane     *struct{}        `json:"controlPlane"`
}

// endpoint is that of the cluster's API server.
func (d *bootData) endpoint() string {
	if d.join != nil {
		return d.join.Discovery.BootstrapToken.APIServerEndpoint
	}
	return d.cluster.ControlPlaneEndpoint
}

// controlPlane tells whether the machine runs a part of the control plane.
func (d *bootData) controlPlane() bool { return d.join == nil || d.join.ControlPlane != nil }

const pkiFolder = "/etc/kubernetes/pki"

// pki are the files of the cluster's authorities, by their path below kubeadm's folder of certificates.
func (d *bootData) pki() map[string]string {
	out := map[string]string{}
	for name, content := range d.files {
		if below, ok := strings.CutPrefix(name, pkiFolder+"/"); ok {
			out[below] = content
		}
	}
	return out
}

var hostnameVariable = regexp.MustCompile(`\{\{\s*(ds\.meta_data\.)?(local_)?hostname\s*\}\}`)

// readBootData does what cloud-init does: it fills in the name of the machine, and reads the files and commands.
func readBootData(text, hostname string) (*bootData, error) {
	if !strings.Contains(text, "#cloud-config") {
		return nil, errors.New("the user data are no cloud-config")
	}
	var given struct {
		WriteFiles []struct{ Path, Content, Encoding string } `json:"write_files"`
		RunCmd     []json.RawMessage                          `json:"runcmd"`
	}
	if err := yaml.Unmarshal([]byte(hostnameVariable.ReplaceAllString(text, hostname)), &given); err != nil {
		return nil, fmt.Errorf("cloud-config: %w", err)
	}
	d := &bootData{files: map[string]string{}}
	for _, f := range given.WriteFiles {
		if f.Encoding != "" {
			return nil, fmt.Errorf("%s is encoded as %s", f.Path, f.Encoding)
		}
		d.files[path.Clean(f.Path)] = f.Content
	}
	var commands strings.Builder
	for _, c := range given.RunCmd {
		commands.Write(c)
	}
	// What kubeadm is told is what counts: a file that no command names does nothing.
	for _, file := range []string{"/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml"} {
		if !strings.Contains(commands.String(), "--config "+file) {
			continue
		}
		if err := d.readKubeadm(d.files[file]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if d.cluster == nil && d.join == nil {
		return nil, errors.New("no command runs kubeadm with a configuration of it")
	}
	_, _, err := net.SplitHostPort(d.endpoint())
	return d, err
}

func (d *bootData) readKubeadm(text string) error {
	for document := range strings.SplitSeq(text, "---\n") {
		var is struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			return err
		}
		var err error
		switch is.Kind {
		case "ClusterConfiguration":
			d.cluster, d.clusterText = &clusterConfiguration{}, document
			err = yaml.Unmarshal([]byte(document), d.cluster)
		case "InitConfiguration":
			first := struct {
				NodeRegistration nodeRegistration `json:"nodeRegistration"`
			}{}
			err = yaml.Unmarshal([]byte(document), &first)
			d.node = first.NodeRegistration
		case "JoinConfiguration":
			d.join = &joinConfiguration{}
			err = yaml.Unmarshal([]byte(document), d.join)
			d.node = d.join.NodeRegistration
		}
		if err != nil {
			return fmt.Errorf("%s: %w", is.Kind, err)
		}
	}
	return nil
}
