package support

import (
	"context"
	"io"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// hostLogs are the ends of the logs of the host's programs.
func (b *bundle) hostLogs() {
	if b.from.Logs == nil {
		return
	}
	b.doing("logs")
	names, err := b.from.Logs.Logs()
	b.missing("logs", err)
	for _, name := range names {
		text, err := endOf(b.from.Logs, name)
		if err != nil {
			b.missing("log of "+name, err)
			continue
		}
		b.text(path.Join("logs", strings.ReplaceAll(name, "/", "_")+".log"), text)
	}
}

func endOf(logs host.Logger, name string) (string, error) {
	f, err := logs.Log(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	from := max(0, end-maxLog)
	raw, err := io.ReadAll(io.NewSectionReader(f, from, end-from))
	text := string(raw)
	if from > 0 { // a line that is cut could hide a secret from the redactor
		_, text, _ = strings.Cut(text, "\n")
	}
	return text, err
}

// podLogs writes the logs of the pods in all namespaces in which a provider, Flux or cert-manager runs, also the logs from before a
// restart.
func (b *bundle) podLogs(ctx context.Context, objects []unstructured.Unstructured) {
	for i := range objects {
		obj := &objects[i]
		if obj.GetKind() != "Pod" || obj.GroupVersionKind().Group != "" || !ofControllers(obj.GetNamespace()) {
			continue
		}
		statuses, _, _ := unstructured.NestedSlice(obj.Object, "status", "containerStatuses")
		for _, each := range statuses {
			container, _ := each.(map[string]any)
			name, _ := container["name"].(string)
			restarts, _ := container["restartCount"].(int64)
			b.podLog(ctx, obj, name, false)
			if restarts > 0 {
				b.podLog(ctx, obj, name, true)
			}
		}
	}
}

func ofControllers(namespace string) bool {
	return strings.HasSuffix(namespace, "-system") || namespace == "cert-manager"
}

func (b *bundle) podLog(ctx context.Context, pod *unstructured.Unstructured, container string, before bool) {
	name := pod.GetNamespace() + "_" + pod.GetName() + "_" + container
	if before {
		name += ".before"
	}
	log, err := b.from.Status.Client.PodLog(ctx, kube.Key{Namespace: pod.GetNamespace(), Name: pod.GetName()}, container, before, maxLog)
	if err != nil {
		b.missing("log of "+name, err)
		return
	}
	b.text(path.Join("logs", name+".log"), string(log))
}
