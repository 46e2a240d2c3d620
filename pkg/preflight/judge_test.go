package preflight

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

func TestJudgeInotify(t *testing.T) {
	for name, tc := range map[string]struct {
		instances, watches string
		want               Status
		summary            string
	}{
		"raised": {"1024\n", "524288\n", StatusOK, "max_user_instances 1024, max_user_watches 524288"},
		"kernel default": {
			"128\n", "249102\n", StatusWarn,
			"max_user_instances is 128; with several nodes 512 are needed, max_user_watches 249102",
		},
		"far too low": {
			"16\n", "8192\n", StatusFail,
			"max_user_instances is 16, less than 128, max_user_watches is 8192; with several nodes 65536 are needed",
		},
		"not a number": {"many\n", "1\n", StatusSkip, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeInotify(fstest.MapFS{
				"proc/sys/fs/inotify/max_user_instances": {Data: []byte(tc.instances)},
				"proc/sys/fs/inotify/max_user_watches":   {Data: []byte(tc.watches)},
			})
			if got.Status != tc.want || (tc.summary != "" && got.Summary != tc.summary) {
				t.Errorf("got %+v, want %s %q", got, tc.want, tc.summary)
			}
			if (got.Hint == "") != (tc.want == StatusOK || tc.want == StatusSkip) {
				t.Errorf("hint %q for %s", got.Hint, got.Status)
			}
		})
	}
	if got := judgeInotify(fstest.MapFS{}); got.Status != StatusSkip {
		t.Errorf("no procfs: %+v", got)
	}
}

func TestJudgeKernel(t *testing.T) {
	modules := &fstest.MapFile{Mode: 0o755 | 1<<31}
	for name, tc := range map[string]struct {
		engine engine.Name
		root   fstest.MapFS
		want   Status
		hint   string
	}{
		"all there": {engine.Podman, fstest.MapFS{
			"lib/modules":      modules,
			"proc/filesystems": {Data: []byte("nodev\tsysfs\nnodev\toverlay\n")},
		}, StatusOK, ""},
		"no modules": {
			engine.Podman,
			fstest.MapFS{"proc/filesystems": {Data: []byte("nodev\toverlay\n")}},
			StatusFail,
			"mkdir -p /lib/modules",
		},
		"docker makes": {engine.Docker, fstest.MapFS{"proc/filesystems": {Data: []byte("nodev\toverlay\n")}}, StatusOK, ""},
		"no overlayfs": {
			engine.Podman,
			fstest.MapFS{"lib/modules": modules, "proc/filesystems": {Data: []byte("nodev\toverlayish\n")}},
			StatusWarn, "modprobe overlay",
		},
		"no procfs": {engine.Podman, fstest.MapFS{"lib/modules": modules}, StatusSkip, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeKernel(tc.engine, tc.root); got.Status != tc.want || !strings.Contains(got.Hint, tc.hint) {
				t.Errorf("got %+v, want %s with hint %q", got, tc.want, tc.hint)
			}
		})
	}
}

func TestJudgeVersion(t *testing.T) {
	for _, tc := range []struct {
		name engine.Name
		info engine.Info
		want Status
	}{
		{engine.Docker, engine.Info{Version: "28.2.2"}, StatusOK},
		{engine.Docker, engine.Info{Version: "19.03.15"}, StatusFail},
		{engine.Docker, engine.Info{Version: "20.10.5+dfsg1"}, StatusOK},
		{engine.Podman, engine.Info{Version: "4.3.1", Rootless: true}, StatusOK},
		{engine.Podman, engine.Info{Version: "3.4.4"}, StatusFail},
		{engine.Podman, engine.Info{Version: "4.0.0-rc1"}, StatusOK},
		{engine.Nerdctl, engine.Info{Version: "1.6"}, StatusFail},
		{engine.Finch, engine.Info{Version: "1.0"}, StatusOK},
	} {
		if got := judgeVersion(tc.name, tc.info); got.Status != tc.want {
			t.Errorf("%s %s: got %+v, want %s", tc.name, tc.info.Version, got, tc.want)
		}
	}
}

func TestJudgeCgroups(t *testing.T) {
	for name, tc := range map[string]struct {
		info engine.Info
		want Status
		hint string
	}{
		"v2":                   {engine.Info{CgroupVersion: 2}, StatusOK, ""},
		"v1":                   {engine.Info{CgroupVersion: 1}, StatusWarn, hintCgroup2},
		"rootless v1":          {engine.Info{CgroupVersion: 1, Rootless: true}, StatusFail, "as root"},
		"rootless undelegated": {engine.Info{CgroupVersion: 2, Rootless: true, MissingControllers: []string{"cpu"}}, StatusFail, hintDelegate},
		"kernel without pids":  {engine.Info{CgroupVersion: 2, MissingControllers: []string{"pids"}}, StatusWarn, "kernel"},
		"silent":               {engine.Info{}, StatusSkip, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeCgroups(engine.Podman, tc.info); got.Status != tc.want || !strings.Contains(got.Hint, tc.hint) {
				t.Errorf("got %+v, want %s with hint %q", got, tc.want, tc.hint)
			}
		})
	}
}

func TestJudgeMemory(t *testing.T) {
	for _, tc := range []struct {
		bytes int64
		want  Status
	}{{0, StatusSkip}, {1 << 30, StatusFail}, {2025 << 20, StatusWarn}, {3 * gib, StatusWarn}, {3900 << 20, StatusOK}, {16 * gib, StatusOK}} {
		if got := judgeMemory(engine.Info{MemoryBytes: tc.bytes}); got.Status != tc.want {
			t.Errorf("%d: got %+v, want %s", tc.bytes, got, tc.want)
		}
	}
	if got := judgeMemory(engine.Info{MemoryBytes: 1, Remote: true}); !strings.Contains(got.Hint, "virtual machine") {
		t.Errorf("remote: %+v", got)
	}
}
