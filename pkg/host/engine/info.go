package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Info describes an engine and the machine on which it runs.
type Info struct {
	// Version of the engine, without a leading v.
	Version string
	// Rootless: the engine runs without root.
	Rootless bool
	// Remote: the engine runs on another or a virtual machine, so paths and limits of this machine do not apply to it.
	Remote bool
	// CgroupVersion is 1 or 2, 0 if unknown.
	CgroupVersion int
	// MissingControllers are cgroup controllers that a node needs and that the engine cannot use.
	MissingControllers []string
	// StoreDir is the engine's folder for images and containers.
	StoreDir string
	// MemoryBytes and CPUs of the machine.
	MemoryBytes int64
	CPUs        int
	// OperatingSystem of the engine's machine.
	OperatingSystem string
	// Socket is the path of the engine's API socket, if the engine tells it.
	Socket string
}

// Info asks the engine for its Info. It fails if the engine does not answer.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	if e.name == Podman {
		out, err := e.Output(ctx, "info", "--format", "json")
		if err != nil {
			return Info{}, err
		}
		return parsePodmanInfo([]byte(out))
	}
	out, err := e.Output(ctx, "info", "--format", "{{json .}}")
	if err != nil {
		if permission := e.socketPermission(ctx); permission != nil {
			return Info{}, permission
		}
		return Info{}, err
	}
	info, err := parseDockerInfo([]byte(out))
	if err != nil {
		// Some clients exit with 0 although the daemon does not answer, and put the error into their output.
		return Info{}, errors.Join(err, e.socketPermission(ctx))
	}
	return info, nil
}

func parseDockerInfo(data []byte) (Info, error) {
	var d struct {
		ServerVersion, CgroupVersion, DockerRootDir, OperatingSystem string
		SecurityOptions, ServerErrors                                []string
		MemTotal                                                     int64
		NCPU                                                         int
		MemoryLimit, PidsLimit, CPUShares                            *bool
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return Info{}, fmt.Errorf("read the engine's info: %w", err)
	}
	if len(d.ServerErrors) > 0 {
		return Info{}, errors.New(cmp.Or(firstLine(d.ServerErrors[0]), "its server has an error that it does not name"))
	}
	info := Info{
		Version:         strings.TrimPrefix(d.ServerVersion, "v"),
		CgroupVersion:   cgroupVersion(d.CgroupVersion),
		StoreDir:        d.DockerRootDir,
		MemoryBytes:     d.MemTotal,
		CPUs:            d.NCPU,
		OperatingSystem: d.OperatingSystem,
		Remote:          strings.Contains(d.OperatingSystem, "Desktop"),
	}
	for _, option := range d.SecurityOptions {
		if option == "name=rootless" || strings.HasPrefix(option, "name=rootless,") {
			info.Rootless = true
		}
	}
	for _, c := range []struct {
		name string
		has  *bool
	}{{"memory", d.MemoryLimit}, {"pids", d.PidsLimit}, {"cpu", d.CPUShares}} {
		if c.has != nil && !*c.has {
			info.MissingControllers = append(info.MissingControllers, c.name)
		}
	}
	return info, nil
}

func parsePodmanInfo(data []byte) (Info, error) {
	var p struct {
		Host struct {
			CgroupVersion     string
			CgroupControllers []string
			MemTotal          int64
			CPUs              int
			ServiceIsRemote   bool
			Distribution      struct{ Distribution, Version string }
			Security          struct{ Rootless bool }
			RemoteSocket      struct {
				Path string
			}
		}
		Store   struct{ GraphRoot string }
		Version struct{ Version string }
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return Info{}, fmt.Errorf("read podman's info: %w", err)
	}
	h := p.Host
	info := Info{
		Version:         p.Version.Version,
		Rootless:        h.Security.Rootless,
		Remote:          h.ServiceIsRemote,
		CgroupVersion:   cgroupVersion(h.CgroupVersion),
		StoreDir:        p.Store.GraphRoot,
		MemoryBytes:     h.MemTotal,
		CPUs:            h.CPUs,
		OperatingSystem: strings.TrimSpace(h.Distribution.Distribution + " " + h.Distribution.Version),
		Socket:          strings.TrimPrefix(h.RemoteSocket.Path, "unix://"),
	}
	// Root may use all controllers that the kernel has; Podman lists them only where they are delegated.
	if info.Rootless {
		for _, need := range []string{"cpu", "memory", "pids"} {
			if !slices.Contains(h.CgroupControllers, need) {
				info.MissingControllers = append(info.MissingControllers, need)
			}
		}
	}
	return info, nil
}

// cgroupVersion parses Docker's "2" and Podman's "v2". It returns 0 for other text.
func cgroupVersion(s string) int {
	switch strings.TrimPrefix(s, "v") {
	case "1":
		return 1
	case "2":
		return 2
	}
	return 0
}
