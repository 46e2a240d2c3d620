// Package support gathers everything that helps to find a fault in a management cluster without access to it: objects, events, logs and
// versions, in one file without secrets.
package support

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// Sources are the sources of a bundle. The bundle leaves out sources that are nil or empty.
type Sources struct {
	// Name of the management cluster.
	Name   string
	Status status.Sources
	// Logs are the logs of the host's programs, if these are processes of this machine.
	Logs host.Logger
	// Files of this machine that go into the bundle, by their names in the bundle: fleet.yaml, the record.
	Files map[string][]byte
	// Private are files of this machine that do not go into the bundle. Their values under names of secrets are removed from everything else.
	Private [][]byte
	// Failure is what made somebody gather it; "" where nobody says.
	Failure string
	// Detail, if not nil, is told what is going on.
	Detail func(string)
}

// Result is what was gathered.
type Result struct {
	FormatVersion string `json:"formatVersion"`
	File          string `json:"file"`
	Bytes         int64  `json:"bytes"`
	// Entries are the files in it.
	Entries []string `json:"entries"`
	// Unread says what could not be read, and so is not in it.
	Unread []string `json:"unread"`
}

const (
	// maxLog is how much of the end of each log goes along.
	maxLog = 2 << 20
	// maxEntry limits one file, maxTotal all files together, both before compression.
	maxEntry, maxTotal = 64 << 20, 512 << 20
	// mostClusters limits the number of clusters to look at in depth.
	mostClusters = 20
)

// Write gathers a bundle and writes it to file, completely or not at all. Only this user may read the file. The bundle lists the parts that
// could not be read.
func Write(ctx context.Context, file string, from Sources) (*Result, error) {
	out, err := atomicfile.New(file, 0o600)
	if err != nil {
		return nil, diag.Wrap("write the support bundle", err, "give another file with --file")
	}
	defer out.Discard()
	zip := gzip.NewWriter(out)
	b := &bundle{from: from, tar: tar.NewWriter(zip), now: time.Now().UTC(), redactor: NewRedactor(privateValues(from.Private), nil)}
	b.gather(ctx)
	if b.err == nil {
		b.err = b.tar.Close()
	}
	if b.err == nil {
		b.err = zip.Close()
	}
	if b.err == nil {
		b.err = out.Commit()
	}
	if b.err != nil {
		return nil, diag.Wrap("write the support bundle", b.err, "")
	}
	result := &Result{FormatVersion: "1", File: file, Entries: b.entries, Unread: append([]string{}, b.unread...)}
	if info, err := os.Stat(file); err == nil {
		result.Bytes = info.Size()
	}
	return result, nil
}

type bundle struct {
	from     Sources
	tar      *tar.Writer
	now      time.Time
	redactor *Redactor
	entries  []string
	unread   []string
	total    int64
	err      error // of writing; nothing more is tried after it
}

func (b *bundle) gather(ctx context.Context) {
	objects := b.objects(ctx)
	b.doing("versions and status")
	report := status.Collect(ctx, b.from.Status)
	b.document("status.json", report)
	b.versions(report)
	b.writeObjects(ctx, objects)
	b.events(ctx)
	b.clusters(ctx, report)
	b.hostLogs()
	b.podLogs(ctx, objects)
	for _, name := range sortedNames(b.from.Files) {
		b.write(path.Join("files", name), b.redactor.YAML(b.from.Files[name]))
	}
	b.readme()
}

func (b *bundle) doing(what string) {
	if b.from.Detail != nil {
		b.from.Detail("gathering " + what)
	}
}

func (b *bundle) missing(what string, err error) {
	if err != nil {
		b.unread = append(b.unread, b.redactor.Text(what+": "+err.Error()))
	}
}

// objects writes all objects of the cluster except noise. From the Secrets among them the redactor learns which values are secret.
func (b *bundle) objects(ctx context.Context) []unstructured.Unstructured {
	client := b.from.Status.Client
	if client == nil {
		b.missing("management cluster "+b.from.Name, b.from.Status.Unreachable)
		b.unread = append(b.unread, unseenSecrets)
		return nil
	}
	b.doing("objects")
	kinds, err := client.Kinds(ctx)
	if err != nil {
		b.missing("objects", err)
		b.unread = append(b.unread, unseenSecrets)
		return nil
	}
	kinds = slices.DeleteFunc(kinds, func(k kube.Kind) bool { return slices.Contains(noise, k.GroupKind().String()) })
	objects, failed := client.ListKinds(ctx, kinds, "")
	names := map[string]bool{}
	var values [][]byte
	for i := range objects {
		names[objects[i].GetName()], names[objects[i].GetNamespace()], names[objects[i].GetKind()] = true, true, true
		values = append(values, secretValues(&objects[i])...)
	}
	b.redactor = NewRedactor(append(values, privateValues(b.from.Private)...), names)
	for _, f := range failed {
		b.missing(f.Kind.Kind, f.Err)
		if f.Kind.Kind == "Secret" && f.Kind.Group == "" {
			b.unread = append(b.unread, unseenSecrets)
		}
	}
	return objects
}

// noise are kinds that change by themselves and tell nothing, and events, which go apart.
var noise = []string{
	"Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "Endpoints", "EndpointSlice.discovery.k8s.io", "ControllerRevision.apps",
	"FlowSchema.flowcontrol.apiserver.k8s.io",
	"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io", "ComponentStatus", "PodMetrics.metrics.k8s.io", "NodeMetrics.metrics.k8s.io",
}

func sortedNames[T any](all map[string]T) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// writeObjects puts the objects of each kind into a file, as far as there is time and room.
func (b *bundle) writeObjects(ctx context.Context, objects []unstructured.Unstructured) {
	byKind := map[string]*strings.Builder{}
	size := 0
	for i := range objects {
		if ctx.Err() != nil || size > maxTotal {
			b.unread = append(b.unread, plain.Count(len(objects)-i, "object")+": there was no time, or no room, for more")
			break
		}
		obj := &objects[i]
		gvk := obj.GroupVersionKind()
		if gvk.Kind == "CustomResourceDefinition" {
			unstructured.RemoveNestedField(obj.Object, "spec", "versions") // schemas: megabytes that are the same everywhere
			unstructured.RemoveNestedField(obj.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		}
		text, err := kube.YAML(b.redactor.Object(obj).Object)
		if err != nil {
			b.missing(kube.RefOf(obj).String(), err)
			continue
		}
		size += len(text)
		name := path.Join("objects", cmp.Or(gvk.Group, "core"), gvk.Kind+".yaml")
		if byKind[name] == nil {
			byKind[name] = &strings.Builder{}
		}
		fmt.Fprintf(byKind[name], "---\n%s", text)
	}
	for _, name := range sortedNames(byKind) {
		b.write(name, []byte(byKind[name].String()))
	}
}

func (b *bundle) events(ctx context.Context) {
	if b.from.Status.Client == nil {
		return
	}
	b.doing("events")
	events, err := b.from.Status.Client.Events(ctx, "")
	b.missing("events", err)
	var text strings.Builder
	for i := range events {
		e := &events[i]
		fmt.Fprintf(&text, "%s  %s  %s %s/%s  %s: %s  (%d)\n", kube.EventTime(e).UTC().Format(time.RFC3339), e.Type, e.InvolvedObject.Kind,
			e.InvolvedObject.Namespace,
			e.InvolvedObject.Name, e.Reason, strings.Join(strings.Fields(e.Message), " "), max(1, e.Count))
	}
	b.text("events.txt", text.String())
}

// clusters writes the clusters that are not Ready, in depth.
func (b *bundle) clusters(ctx context.Context, report *status.Report) {
	n := 0
	for _, c := range report.Clusters {
		if c.Ready || n == mostClusters {
			continue
		}
		n++
		name := c.Namespace + "/" + c.Name
		b.doing("cluster " + name)
		found, err := why.Collect(ctx, why.Sources{
			Client: b.from.Status.Client, Management: b.from.Name, Cluster: name,
			Repo: b.from.Status.Repo,
		})
		if err != nil {
			b.missing("cluster "+name, err)
			continue
		}
		b.document(path.Join("why", c.Namespace+"_"+c.Name+".json"), found)
	}
}

// versions of all that takes part.
func (b *bundle) versions(report *status.Report) {
	b.document("versions.json", map[string]any{
		"gathered": b.now.Format(time.RFC3339), "fleetctl": version.Get(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		"cpus":              runtime.NumCPU(),
		"managementCluster": report.Cluster, "providers": report.Providers, "flux": report.Flux.Version,
		"fluxControllers": report.Flux.Controllers,
	})
}

// readme describes the content of the bundle. The redactor does not change the text of this package, and redacts everything else.
func (b *bundle) readme() {
	var s strings.Builder
	fmt.Fprintf(&s, "Support bundle of the management cluster %s, gathered %s by fleetctl %s.\n\n", b.redactor.Text(b.from.Name),
		b.now.Format(time.RFC3339), version.Get().Version)
	if b.from.Failure != "" {
		fmt.Fprintf(&s, "It was gathered because this failed:\n\n    %s\n\n", strings.ReplaceAll(b.redactor.Text(b.from.Failure), "\n", "\n    "))
	}
	s.WriteString(readmeText)
	if len(b.unread) > 0 {
		s.WriteString("\nCould not be read:\n")
		for _, u := range b.unread {
			if u != unseenSecrets {
				u = b.redactor.Text(u) // which knows more than when it was noted
			}
			s.WriteString("- " + strings.Join(strings.Fields(u), " ") + "\n")
		}
	}
	b.write(readmeFile, []byte(s.String()))
}

// readmeFile says what is in a bundle.
const readmeFile = "README.txt"

const readmeText = `status.json      what "fleetctl status" says
why/             "fleetctl why" of each cluster that is not Ready
versions.json    of fleetctl, the API server, the providers and Flux
objects/         all objects, a file for each kind; CRDs without their schemas
events.txt       the events, the newest last
logs/            of the host's programs, or of the pods of providers and Flux
files/           fleet.yaml, and what this machine remembers of the cluster

Removed: the values of Secrets, in all files; values under names such as password or token; private keys, kubeconfigs, tokens in
URLs. Still, look through the bundle before you give it to somebody.
`

// document writes a value as JSON.
func (b *bundle) document(name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		b.missing(name, err)
		return
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		b.missing(name, err)
		return
	}
	out, err := json.MarshalIndent(b.redactor.Value(decoded), "", "  ")
	if err != nil {
		b.missing(name, err)
		return
	}
	b.write(name, append(out, '\n'))
}

func (b *bundle) text(name, s string) { b.write(name, []byte(b.redactor.Text(s))) }

// write puts a file into the archive. The content is redacted already; write redacts the name.
func (b *bundle) write(name string, content []byte) {
	if b.err != nil {
		return
	}
	if len(content) > maxEntry || b.total+int64(len(content)) > maxTotal {
		b.unread = append(b.unread, name+" is too large")
		return
	}
	b.total += int64(len(content))
	name = path.Join("support-bundle", b.redactor.Text(path.Clean("/" + name)[1:]))
	b.err = b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: b.now})
	if b.err == nil {
		_, b.err = b.tar.Write(content)
	}
	b.entries = append(b.entries, name)
}
