package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
)

const (
	// canary is the credential of the hostile API server. No other server gets it, and nobody prints it.
	canary = "canary-7f3a9c51e2"
	// evil is what a hostile API server writes into names and messages: it would clear a terminal, turn a line around, and make a CI runner
	// act.
	evil = "evil\u001b[2J\u009b31m\u202edliub\r\n::error::owned\x07\x00 Bearer " + canary
)

// hostileServer is an API server that answers as a test wants, and another server that nobody may call with the canary.
type hostileServer struct {
	*httptest.Server
	other  *httptest.Server
	stolen atomic.Int32 // requests to other with the canary
	asked  atomic.Int64 // requests
	sent   atomic.Int64 // bytes
	ran    string       // file that a command in a kubeconfig of the server would write
}

// counted counts what is sent to the client.
type counted struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func newHostileServer(t *testing.T, answer func(*hostileServer, http.ResponseWriter, *http.Request)) *hostileServer {
	t.Helper()
	s := &hostileServer{ran: filepath.Join(t.TempDir(), "ran")}
	s.other = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if traces.Of(canary).In(append(body, fmt.Sprint(r.URL, r.Header)...)) {
			s.stolen.Add(1)
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.other.Close)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		answer(s, &counted{w, &s.sent}, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections() // Close would wait for answers that do not end
		s.Close()
	})
	return s
}

// kubeconfig reaches the server with the canary, through the context "there".
func (s *hostileServer) kubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   s.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: canary}
	config.Contexts["there"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "me"}
	config.CurrentContext = "there"
	return config
}

// workloadKubeconfig is what the server says is the kubeconfig of a workload cluster: it leads to the other server, and runs a command.
func (s *hostileServer) workloadKubeconfig() []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.other.URL, InsecureSkipTLSVerify: true}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", Args: []string{"-c", "echo ran >" + s.ran},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	config.Contexts["demo"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "me"}
	config.CurrentContext = "demo"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return raw
}

// hostileKinds are the kinds that the hostile API server says it has, by group and version. A kind in parentheses has no namespace.
var hostileKinds = map[string]string{
	"v1": "(Namespace) (Node) (PersistentVolume) Pod ConfigMap Secret Service Event " +
		"ServiceAccount PersistentVolumeClaim",
	"apps/v1":                                 "Deployment DaemonSet StatefulSet ReplicaSet",
	"apiextensions.k8s.io/v1":                 "(CustomResourceDefinition)",
	"rbac.authorization.k8s.io/v1":            "(ClusterRole) (ClusterRoleBinding) Role RoleBinding",
	"admissionregistration.k8s.io/v1":         "(ValidatingWebhookConfiguration) (MutatingWebhookConfiguration) (ValidatingAdmissionPolicy)",
	"coordination.k8s.io/v1":                  "Lease",
	"cluster.x-k8s.io/v1beta2":                "Cluster Machine MachineSet MachineDeployment MachinePool MachineHealthCheck",
	"controlplane.cluster.x-k8s.io/v1beta2":   "KubeadmControlPlane",
	"bootstrap.cluster.x-k8s.io/v1beta2":      "KubeadmConfig KubeadmConfigTemplate",
	"infrastructure.cluster.x-k8s.io/v1beta2": "DevCluster DevMachine DevMachineTemplate",
	"clusterctl.cluster.x-k8s.io/v1alpha3":    "Provider",
	"source.toolkit.fluxcd.io/v1":             "GitRepository HelmRepository HelmChart OCIRepository Bucket",
	"kustomize.toolkit.fluxcd.io/v1":          "Kustomization",
	"helm.toolkit.fluxcd.io/v2":               "HelmRelease",
	"notification.toolkit.fluxcd.io/v1beta3":  "Alert Provider",
}

// resourceOf returns the name of a kind in paths, and whether the kind has a namespace.
func resourceOf(kind string) (plain, resource string, namespaced bool) {
	plain = strings.Trim(kind, "()")
	resource = strings.ToLower(plain)
	switch {
	case strings.HasSuffix(resource, "y"):
		resource = strings.TrimSuffix(resource, "y") + "ies"
	case strings.HasSuffix(resource, "s"):
		resource += "es"
	default:
		resource += "s"
	}
	return plain, resource, plain == kind
}

// discovers answers discovery, and tells whether it did.
func discovers(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	var answer any
	switch {
	case r.URL.Path == "/version":
		answer = map[string]string{"gitVersion": "v1.36.3"}
	case r.URL.Path == "/api":
		answer = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case r.URL.Path == "/apis":
		groups := []any{}
		for _, gv := range slices.Sorted(maps.Keys(hostileKinds)) {
			if group, version, ok := strings.Cut(gv, "/"); ok {
				at := map[string]string{"groupVersion": gv, "version": version}
				groups = append(groups, map[string]any{"name": group, "versions": []any{at}, "preferredVersion": at})
			}
		}
		answer = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	case hostileKinds[path] != "":
		resources := []any{}
		for kind := range strings.FieldsSeq(hostileKinds[path]) {
			plain, resource, namespaced := resourceOf(kind)
			resources = append(resources, map[string]any{
				"name": resource, "kind": plain, "namespaced": namespaced,
				"verbs": []string{"get", "list", "watch", "create", "update", "patch", "delete"},
			})
		}
		answer = map[string]any{"kind": "APIResourceList", "groupVersion": path, "resources": resources}
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
	return true
}

// asked is the kind and the object that a path is about. The name of a list is "".
func asked(r *http.Request) (gv, kind, namespace, name string) {
	for gv, kinds := range hostileKinds {
		prefix := "/apis/" + gv + "/"
		if gv == "v1" {
			prefix = "/api/v1/"
		}
		rest, ok := strings.CutPrefix(r.URL.Path, prefix)
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if len(parts) > 2 && parts[0] == "namespaces" {
			namespace, parts = parts[1], parts[2:]
		}
		for each := range strings.FieldsSeq(kinds) {
			if plain, resource, _ := resourceOf(each); resource == parts[0] {
				return gv, plain, namespace, strings.Join(parts[1:], "/")
			}
		}
	}
	return "", "", "", ""
}

// hostileObject is an object that owns itself, with evil in all that is read for people.
func (s *hostileServer) hostileObject(gv, kind, namespace, name string) map[string]any {
	ref := map[string]any{
		"apiVersion": gv, "apiGroup": strings.Split(gv, "/")[0], "kind": kind, "name": name, "namespace": namespace, "uid": "u-" + kind + name,
	}
	condition := map[string]any{
		"type": "Ready", "status": "False", "reason": evil, "message": evil, "severity": evil, "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
	conditions := []any{condition}
	status := map[string]any{"phase": evil, "conditions": conditions, "version": evil}
	o := map[string]any{
		"apiVersion": gv, "kind": kind,
		"metadata": map[string]any{
			"name": name, "namespace": namespace, "uid": ref["uid"], "resourceVersion": "7", "generation": 2,
			"creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": []any{ref}, "annotations": map[string]any{evil: evil},
			"labels": map[string]any{
				"cluster.x-k8s.io/cluster-name": "demo", "cluster.x-k8s.io/provider": evil, "app.kubernetes.io/version": evil,
				"app.kubernetes.io/part-of": "flux",
			},
		},
		"spec": map[string]any{
			"clusterName": "demo", "controlPlaneRef": ref, "infrastructureRef": ref, "bootstrap": map[string]any{"configRef": ref},
			"sourceRef": ref, "url": "https://" + evil, "path": evil, "version": evil,
		},
		"status": status,
	}
	switch kind {
	case "Secret":
		o["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString(s.workloadKubeconfig()), evil: "////"}
	case "ConfigMap":
		o["data"] = map[string]any{"fleet": evil, "id": evil, evil: evil}
	case "Event":
		o["reason"], o["message"], o["type"], o["involvedObject"] = evil, evil, "Warning", ref
	}
	return o
}

// hostileContent answers as an API server with hostile objects. extra goes to the metadata of lists.
func (s *hostileServer) hostileContent(w http.ResponseWriter, r *http.Request, count int, extra map[string]any) {
	if discovers(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	gv, kind, namespace, name := asked(r)
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case r.URL.Query().Has("watch"):
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": s.hostileObject(gv, kind, "demo", "demo")})
	case r.URL.Path == "/readyz":
	case kind == "", kind == "ConfigMap" && namespace == "fleetctl-system": // the cluster belongs to no fleet, so that commands go on
		typed("application/json", http.StatusNotFound,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)(s, w, r)
	case name != "":
		_ = json.NewEncoder(w).Encode(s.hostileObject(gv, kind, namespace, name))
	default:
		items := []any{s.hostileObject(gv, kind, "demo", "demo"), s.hostileObject(gv, kind, evil, evil)}
		for i := range count {
			items = append(items, s.hostileObject(gv, kind, "demo", fmt.Sprintf("%s-%d", evil, i)))
		}
		metadata := map[string]any{"resourceVersion": "7"}
		maps.Copy(metadata, extra)
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gv, "kind": kind + "List", "metadata": metadata, "items": items})
	}
}
