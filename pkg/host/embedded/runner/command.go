package runner

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// command makes the plan's command line and environment.
func (p *planner) command(ctx context.Context, img images.Image, env map[string]string) (*plan, error) {
	words := append([]string(nil), p.c.Command...)
	args := p.c.Args
	if len(words) == 0 {
		words = img.Config.Entrypoint
		if len(args) == 0 {
			args = img.Config.Cmd
		}
	}
	line := make([]string, 0, len(words)+len(args))
	for _, each := range append(slices.Clip(words), args...) {
		line = append(line, expand(each, env))
	}
	if len(line) == 0 {
		return nil, fmt.Errorf("spec.template.spec.%s.command: it is empty, and the image %s has no command either; name the program there",
			containerField(p.c), p.c.Image)
	}
	program, err := img.Program(line[0])
	if err != nil { // on kind it could not start either
		return nil, fmt.Errorf("spec.template.spec.%s.command: %w; correct the command, or take the image that has the program",
			containerField(p.c), err)
	}
	if err := checkProgram(p.c, program); err != nil {
		return nil, err
	}
	probes, err := p.probes(ctx, env)
	if err != nil {
		return nil, err
	}
	result := &plan{probes: probes, pod: &p.d.Spec.Template.Spec, image: img, grace: graceOf(&p.d.Spec.Template.Spec)}
	final, err := p.arguments(ctx, result, program, line[1:])
	if err != nil {
		return nil, err
	}
	finalEnv, err := p.processEnv(ctx, img, env)
	if err != nil {
		return nil, err
	}
	dir, err := p.workingDir(img)
	if err != nil {
		return nil, err
	}
	result.services = p.services
	result.spec = process.Spec{
		Name: p.d.Namespace + "/" + p.d.Name, Path: program, Args: final, Env: finalEnv, Dir: dir,
		LogFile: p.logFile(types.NamespacedName{Namespace: p.d.Namespace, Name: p.d.Name}), Records: p.opts.Records,
	}
	// The hash leaves out values from Secrets in the environment. As with the kubelet, their change waits for the next start.
	result.hash = hashOf(p.d.Spec.Template, img.Digest, final, p.rewritten(finalEnv))
	return result, nil
}

// rewritten are the variables whose value has an address that the runner chose.
func (p *planner) rewritten(env []string) []string {
	var out []string
	for _, e := range env {
		if strings.Contains(e, "http://"+loopback) {
			out = append(out, e)
		}
	}
	return out
}

// arguments adapts the command line to a process on a shared machine: paths of volumes, addresses, ports, no leader election.
func (p *planner) arguments(ctx context.Context, result *plan, program string, line []string) ([]string, error) {
	words := 0
	for words < len(line) && !strings.HasPrefix(line[words], "-") && !strings.Contains(line[words], "/") {
		words++
	}
	known, err := p.help.of(ctx, result.image.Digest, program, line[:words])
	if err != nil {
		return nil, err
	}
	set := &argSet{args: parseArgs(line, known), known: known}
	for i := range set.args {
		if err := p.rewriteArg(ctx, &set.args[i]); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(known) {
		if _, given := set.get(name); given {
			continue
		}
		if path, ok := p.mounts.rewrite(known[name].Default); ok && strings.HasPrefix(known[name].Default, "/") {
			set.set(name, path)
		}
	}
	for _, name := range leaderElection {
		if _, given := set.get(name); given || known[name].Name != "" {
			set.set(name, "false")
		}
	}
	if value, given := set.get("kubeconfig"); known["kubeconfig"].Name != "" && !given && value == "" && automount(result.pod) {
		set.set("kubeconfig", p.rec.creds.kubeconfig())
	}
	if err := p.movePorts(set, result); err != nil {
		return nil, err
	}
	return set.strings(), nil
}

// probes are the container's probes. The commands of exec probes are adapted like the container's command, but in them $(NAME) refers
// only to variables with a value in the manifest itself. The kubelet does the same.
func (p *planner) probes(ctx context.Context, env map[string]string) (map[string]*corev1.Probe, error) {
	static := map[string]string{}
	for _, e := range p.c.Env {
		if e.ValueFrom == nil {
			static[e.Name] = env[e.Name]
		}
	}
	probes := probesOf(p.c)
	for name, probe := range probes {
		if probe.Exec == nil || len(probe.Exec.Command) == 0 {
			continue
		}
		line := make([]string, 0, len(probe.Exec.Command))
		for _, each := range probe.Exec.Command {
			line = append(line, expand(each, static))
		}
		args := argSet{args: parseArgs(line[1:], nil)}
		for i := range args.args {
			if err := p.rewriteArg(ctx, &args.args[i]); err != nil {
				return nil, err
			}
		}
		probe = probe.DeepCopy()
		probe.Exec.Command = slices.Concat(line[:1], args.strings())
		probes[name] = probe
	}
	return probes, nil
}

func (p *planner) rewriteArg(ctx context.Context, a *arg) error {
	if a.name == "" {
		a.text, _ = p.mounts.rewrite(a.text)
		return nil
	}
	a.value, _ = p.mounts.rewrite(a.value)
	value, err := p.service(ctx, a.name, a.value)
	a.value = value
	return err
}

func (p *planner) service(ctx context.Context, name, value string) (string, error) {
	rewritten, ref, err := p.rewriteService(ctx, name, value)
	if ref.Name != "" {
		p.services = append(p.services, ref)
	}
	return rewritten, err
}

// movePorts gives each listener a port of this machine, on loopback if its flag takes an address.
func (p *planner) movePorts(set *argSet, result *plan) error {
	declared := map[int32]bool{}
	for _, port := range p.c.Ports {
		declared[port.ContainerPort] = true
	}
	result.moved, result.fixed = map[int32]int32{}, map[int32]bool{}
	for _, l := range set.listeners(declared) {
		actual, err := p.ports.get(p.owner(), l.port)
		if err != nil {
			return err
		}
		value := strconv.Itoa(int(actual))
		if !l.portOnly {
			value = loopback + ":" + value
		}
		set.set(l.flag, value)
		result.moved[l.port] = actual
	}
	for port := range declared {
		if _, ok := result.moved[port]; !ok {
			result.fixed[port] = true
		}
	}
	return nil
}

func (p *planner) owner() string { return p.d.Namespace + "/" + p.d.Name }

// processEnv is the whole environment: the image's variables, variables that every program may expect, and the manifest's.
func (p *planner) processEnv(ctx context.Context, img images.Image, env map[string]string) ([]string, error) {
	all := map[string]string{}
	for _, e := range img.Config.Env {
		name, value, _ := strings.Cut(e, "=")
		all[name] = value
	}
	all["PATH"] = imagePath(img, all["PATH"])
	all["HOME"] = filepath.Join(p.rec.dir, "home")
	all["TMPDIR"] = filepath.Join(p.rec.dir, rootDir, "tmp")
	all["HOSTNAME"] = p.pod.Name
	for _, file := range certificateFiles {
		if found := img.File(file); found != "" {
			all["SSL_CERT_FILE"] = found
			break
		}
	}
	if automount(&p.d.Spec.Template.Spec) {
		all["KUBECONFIG"] = p.rec.creds.kubeconfig()
	}
	for name, value := range env {
		value, _ = p.mounts.rewrite(value)
		value, err := p.service(ctx, "", value)
		if err != nil {
			return nil, err
		}
		all[name] = value
	}
	if err := os.MkdirAll(filepath.Join(p.rec.dir, "home"), 0o700); err != nil {
		return nil, err
	}
	list := make([]string, 0, len(all))
	for _, name := range sortedKeys(all) {
		list = append(list, name+"="+all[name])
	}
	return list, nil
}

// certificateFiles are the usual paths of an image's trusted certificate authorities.
var certificateFiles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// imagePath is the image's PATH, with the folders' paths on this machine.
func imagePath(img images.Image, path string) string {
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	var dirs []string
	for dir := range strings.SplitSeq(path, ":") {
		dirs = append(dirs, filepath.Join(img.Root, dir))
	}
	return strings.Join(dirs, ":")
}

// workingDir is the working folder of the process: a mount, or a folder of the image. A process that writes to its working folder needs a
// volume there, because Deployments share the image's files.
func (p *planner) workingDir(img images.Image) (string, error) {
	dir := p.c.WorkingDir
	if dir == "" {
		dir = img.Config.WorkingDir
	}
	if dir == "" || dir == "/" {
		return p.rootFolder(img)
	}
	if mounted, ok := p.mounts.rewrite(dir); ok {
		return mounted, nil
	}
	if found := img.File(dir); found != "" {
		return found, nil
	}
	made := filepath.Join(p.rec.dir, rootDir, dir)
	return made, os.MkdirAll(made, 0o700)
}

// rootFolder is the working folder of a process that starts in "/". It has the mounts, and the image's files beside them, because the
// process may use relative paths: Azure Service Operator finds the CRDs in its image like that.
func (p *planner) rootFolder(img images.Image) (string, error) {
	root := filepath.Join(p.rec.dir, rootDir)
	entries, err := os.ReadDir(img.Root)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		at := filepath.Join(root, e.Name())
		info, err := os.Lstat(at)
		if err == nil && (info.Mode()&fs.ModeSymlink == 0 || p.mounts.leadsTo(at)) {
			continue // a mount, or a folder that contains one
		}
		if err := linkTo(at, filepath.Join(img.Root, e.Name())); err != nil {
			return "", err
		}
	}
	return root, nil
}

func graceOf(pod *corev1.PodSpec) time.Duration {
	if pod.TerminationGracePeriodSeconds != nil {
		return time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	}
	return 30 * time.Second
}

// checkProgram refuses a program that this machine cannot start without files of the image: a script, or a dynamically linked program.
func checkProgram(c *corev1.Container, path string) error {
	program, err := elf.Open(path)
	if err != nil {
		return refuse(containerField(c)+".command", "%s is not a Linux program (a script needs its image around it)", filepath.Base(path))
	}
	defer func() { _ = program.Close() }()
	for _, section := range program.Progs {
		if section.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, section.Filesz)
		if _, err := section.ReadAt(loader, 0); err != nil {
			return err
		}
		name := strings.TrimRight(string(loader), "\x00")
		if _, err := os.Stat(name); err != nil {
			return refuse(containerField(c)+".image", "its program is linked dynamically and this machine has no %s", name)
		}
	}
	return nil
}
