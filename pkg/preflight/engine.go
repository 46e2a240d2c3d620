package preflight

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Engine is the container engine of this machine as several checks see it; it is asked once.
type Engine struct {
	once   sync.Once
	detect func(context.Context) (*engine.Engine, error)
	found  *engine.Engine
	info   engine.Info
	err    error
}

// NewEngine returns an Engine that looks with detect when a check first needs it. A nil detect is engine.Detect.
func NewEngine(detect func(context.Context) (*engine.Engine, error)) *Engine {
	if detect == nil {
		detect = engine.Detect
	}
	return &Engine{detect: detect}
}

func (e *Engine) get(ctx context.Context) (engine.Name, engine.Info, error) {
	e.once.Do(func() {
		if e.found, e.err = e.detect(ctx); e.err == nil {
			e.info, e.err = e.found.Info(ctx)
		}
	})
	if e.err != nil {
		return "", engine.Info{}, e.err
	}
	return e.found.Name(), e.info, nil
}

// CheckSocket checks that the engine's API socket answers; the docker infrastructure provider makes its machines through it.
func (e *Engine) CheckSocket(ctx context.Context) Result {
	if _, _, err := e.get(ctx); err != nil {
		return skipNoEngine()
	}
	socket, err := e.found.Socket(ctx)
	if err != nil {
		return FailWith(err)
	}
	return OK("%s", socket)
}

// CheckInotify checks that the machine under the engine lets programs watch as many files as Kubernetes does.
func (e *Engine) CheckInotify(ctx context.Context) Result { return e.onItsMachine(ctx, checkInotify) }

// CheckKernel checks that the kernel under the engine has what kind's nodes need.
func (e *Engine) CheckKernel(ctx context.Context) Result { return e.onItsMachine(ctx, checkKernel) }

// minVersions are the oldest engines with which kind's nodes start: Docker's is the first with private cgroup namespaces,
// Podman's the first with netavark.
var minVersions = map[engine.Name]string{engine.Docker: "20.10.0", engine.Podman: "4.0.0", engine.Nerdctl: "1.7.0"}

// CheckVersion checks that a container engine answers, and that kind's nodes start with its version.
func (e *Engine) CheckVersion(ctx context.Context) Result {
	name, info, err := e.get(ctx)
	if err != nil {
		return FailWith(err)
	}
	return judgeVersion(name, info)
}

func judgeVersion(name engine.Name, info engine.Info) Result {
	kindOf := ""
	if info.Rootless {
		kindOf = " rootless"
	}
	if oldest := minVersions[name]; oldest != "" && older(info.Version, oldest) {
		return Fail(fmt.Sprintf("update %s to %s or newer", name, oldest), "%s %s%s is too old", name, info.Version, kindOf)
	}
	return OK("%s %s%s", name, info.Version, kindOf)
}

// CheckCgroups checks that the engine may limit its containers with the cgroup controllers that the kubelet needs.
func (e *Engine) CheckCgroups(ctx context.Context) Result {
	name, info, err := e.get(ctx)
	if err != nil {
		return skipNoEngine()
	}
	return judgeCgroups(name, info)
}

const (
	hintCgroup2  = `boot with cgroup v2: add "systemd.unified_cgroup_hierarchy=1" to the kernel's command line`
	hintDelegate = `let systemd delegate them: sudo mkdir -p /etc/systemd/system/user@.service.d && ` +
		`printf '[Service]\nDelegate=yes\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && ` +
		`sudo systemctl daemon-reload, then log in again`
)

func judgeCgroups(name engine.Name, info engine.Info) Result {
	missing := strings.Join(info.MissingControllers, ", ")
	switch {
	case info.Rootless && info.CgroupVersion != 2:
		return Fail(hintCgroup2+", or run the engine as root", "rootless %s needs cgroup v2", name)
	case info.Rootless && missing != "":
		return Fail(hintDelegate, "rootless %s may not use the cgroup controllers %s", name, missing)
	case missing != "":
		return Warn("enable them in the kernel's configuration or command line", "the kernel lacks the cgroup controllers %s", missing)
	case info.CgroupVersion == 1:
		return Warn(hintCgroup2, "cgroup v1: the kubelet of Kubernetes 1.35 and newer refuses it unless the node image allows it")
	case info.CgroupVersion == 0:
		return Skip("%s does not say which cgroup version it uses", name)
	}
	return OK("cgroup v%d", info.CgroupVersion)
}

// Resources that a management cluster with its providers needs.
const (
	memoryFail = 2 * gib
	memoryWarn = 4 * gib
	storeFail  = 3 * gib
	storeWarn  = 10 * gib
	gib        = int64(1) << 30
)

// CheckMemory checks that the engine has the memory that a management cluster with its providers needs.
func (e *Engine) CheckMemory(ctx context.Context) Result {
	_, info, err := e.get(ctx)
	if err != nil {
		return skipNoEngine()
	}
	return judgeMemory(info)
}

func judgeMemory(info engine.Info) Result {
	hint := "give the machine more memory"
	if info.Remote {
		hint = "give the engine's virtual machine more memory, in its settings"
	}
	switch {
	case info.MemoryBytes <= 0:
		return Skip("the engine does not say")
	case info.MemoryBytes < memoryFail*9/10: // firmware and kernel keep some of it
		return Fail(hint, "%s; a management cluster needs %s", size(info.MemoryBytes), size(memoryFail))
	case info.MemoryBytes < memoryWarn*9/10:
		return Warn(hint, "%s; %s are better", size(info.MemoryBytes), size(memoryWarn))
	}
	return OK("%s, %s", size(info.MemoryBytes), plain.Count(info.CPUs, "CPU"))
}

// CheckStore checks that there is space for images where the engine keeps them.
func (e *Engine) CheckStore(ctx context.Context) Result {
	name, info, err := e.get(ctx)
	switch {
	case err != nil:
		return skipNoEngine()
	case info.Remote || info.StoreDir == "":
		return Skip("the store of %s is on another machine", name)
	}
	return judgeDisk(info.StoreDir, storeFail, storeWarn, fmt.Sprintf(`free some, for example with "%s system prune"`, name))
}

// onItsMachine runs a check of the kernel only where that kernel is the engine's.
func (e *Engine) onItsMachine(ctx context.Context, check func(engine.Name) Result) Result {
	name, info, err := e.get(ctx)
	if err == nil && info.Remote {
		return Skip("%s runs on another machine", name)
	}
	return check(name)
}

func skipNoEngine() Result { return Skip("no container engine answers") }

// older compares dotted versions by their numbers; what follows them ("-dev", "+dfsg1") does not count.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range b {
		if i >= len(a) {
			return b[i] > 0
		}
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, digits := 0, 0
		for _, r := range part {
			if r < '0' || r > '9' {
				break
			}
			n, digits = n*10+int(r-'0'), digits+1
		}
		if digits == 0 {
			break
		}
		out = append(out, n)
		if digits < len(part) {
			break
		}
	}
	return out
}

// size in GiB or MiB, as people say it.
func size(bytes int64) string {
	if bytes >= gib {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/float64(gib))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
