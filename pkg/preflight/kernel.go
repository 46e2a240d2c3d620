package preflight

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// inotify limits below which kubelets and controllers stop with "too many open files", and those that kind recommends.
var inotifyLimits = []struct {
	key        string
	fail, good int
}{
	{"fs.inotify.max_user_instances", 128, 512},
	{"fs.inotify.max_user_watches", 8192, 65536},
}

// inotifyFix sets both limits now and for later boots.
const inotifyFix = `printf 'fs.inotify.max_user_instances=1024\nfs.inotify.max_user_watches=524288\n' | ` +
	`sudo tee /etc/sysctl.d/99-fleetctl.conf && sudo sysctl --system`

// judgeInotify reads the limits below root, which is the file system of a Linux machine.
func judgeInotify(root fs.FS) Result {
	status := StatusOK
	var parts []string
	for _, limit := range inotifyLimits {
		value, err := sysctl(root, limit.key)
		if err != nil {
			return Skip("%v", err)
		}
		short := strings.TrimPrefix(limit.key, "fs.inotify.")
		switch {
		case value < limit.fail:
			status = StatusFail
			parts = append(parts, fmt.Sprintf("%s is %d, less than %d", short, value, limit.fail))
		case value < limit.good:
			if status == StatusOK {
				status = StatusWarn
			}
			parts = append(parts, fmt.Sprintf("%s is %d; with several nodes %d are needed", short, value, limit.good))
		default:
			parts = append(parts, fmt.Sprintf("%s %d", short, value))
		}
	}
	result := Result{Status: status, Summary: strings.Join(parts, ", ")}
	if status != StatusOK {
		result.Hint = inotifyFix
	}
	return result
}

// sysctl reads a kernel setting by its dotted name.
func sysctl(root fs.FS, key string) (int, error) {
	data, err := fs.ReadFile(root, "proc/sys/"+strings.ReplaceAll(key, ".", "/"))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

// judgeKernel looks for what nodes take from the kernel: its modules' folder and overlayfs. Packet
// filtering is loaded on demand, by the node itself.
func judgeKernel(name engine.Name, root fs.FS) Result {
	// Docker makes a folder that is to be mounted and is not there; the others refuse.
	if info, err := fs.Stat(root, "lib/modules"); (err != nil || !info.IsDir()) && name != engine.Docker {
		return Fail("sudo mkdir -p /lib/modules", "the folder /lib/modules is missing; kind mounts it into its nodes")
	}
	filesystems, err := fs.ReadFile(root, "proc/filesystems")
	if err != nil {
		return Skip("read /proc/filesystems: %v", cause(err))
	}
	if !hasWord(string(filesystems), "overlay") {
		return Warn("sudo modprobe overlay", "the kernel has not loaded overlayfs; without it nodes are slow and take much disk")
	}
	return OK("overlayfs is there")
}

func hasWord(text, word string) bool {
	for field := range strings.FieldsSeq(text) {
		if field == word {
			return true
		}
	}
	return false
}
