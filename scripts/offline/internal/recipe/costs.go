package recipe

import "time"

// costs are the seconds of processor time that programs take to build from nothing, in the order in which a build makes them: what one has
// compiled serves the next. They are good for telling a person how long it will take, and no more: five seconds for a megabyte of source.
var costs = map[string]int{
	"cluster-api-controller":            210,
	"kubeadm-bootstrap-controller":      20,
	"kubeadm-control-plane-controller":  30,
	"capd-manager":                      40,
	"cluster-api-controller-before":     210,
	"source-controller-before":          15,
	"kustomize-controller-before":       15,
	"helm-controller-before":            15,
	"cert-manager-controller-before":    30,
	"cert-manager-cainjector-before":    10,
	"cert-manager-webhook-before":       10,
	"source-controller":                 260,
	"kustomize-controller":              70,
	"helm-controller":                   25,
	"notification-controller":           110,
	"cert-manager-controller":           220,
	"cert-manager-cainjector":           20,
	"cert-manager-webhook":              20,
	"kube-control-plane":                190,
	"etcd":                              80,
	"kubernetes":                        430,
	"gitea":                             600,
	"cluster-api-aws-controller":        900,
	"cluster-api-aws-controller-before": 300,
	"cluster-api-azure-controller":      900,
	"cluster-api-gcp-controller":        400,
}

// Cost is about how much processor time it takes to build the program from nothing.
func (p Program) Cost() time.Duration {
	const unknown = 60
	if seconds, ok := costs[p.Name]; ok {
		return time.Duration(seconds) * time.Second
	}
	return unknown * time.Second
}
