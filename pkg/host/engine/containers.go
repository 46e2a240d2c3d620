package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Container has the used fields of a container's inspection.
type Container struct {
	ID, Name, Image string
	Labels          map[string]string
	// Status in the engine's words: created, running, paused, exited…
	Status  string
	Running bool
	// Started is false if the container has never been started, because its creation was interrupted.
	Started bool
	Mounts  []Mount
	// Networks maps a network's name to the container's IPv4 address in it. The address of a stopped container is empty.
	Networks map[string]string
}

// Mount is a folder, file or volume in a container.
type Mount struct {
	Type, Name, Source, Destination string
}

// Containers lists the running and stopped containers that have all labels ("key" or "key=value").
func (e *Engine) Containers(ctx context.Context, labels ...string) ([]Container, error) {
	args := []string{"ps", "--all", "--no-trunc", "--format", "{{.ID}}"}
	for _, l := range labels {
		args = append(args, "--filter", "label="+l)
	}
	for attempt := 0; ; attempt++ {
		out, err := e.Output(ctx, args...)
		if err != nil {
			return nil, fmt.Errorf("list containers: %w", err)
		}
		ids := strings.Fields(out)
		if len(ids) == 0 {
			return nil, nil
		}
		list, err := e.inspect(ctx, ids...)
		// A container may have been removed after the listing. Try once more.
		if err == nil || attempt > 0 || ctx.Err() != nil {
			return list, err
		}
	}
}

func (e *Engine) inspect(ctx context.Context, ids ...string) ([]Container, error) {
	out, err := e.Output(ctx, append([]string{"container", "inspect"}, ids...)...)
	if err != nil {
		return nil, fmt.Errorf("inspect containers: %w", err)
	}
	return parseContainers([]byte(out))
}

func parseContainers(data []byte) ([]Container, error) {
	var raw []struct {
		ID        string `json:"Id"`
		Name      string
		ImageName string
		State     struct {
			Status    string
			Running   bool
			StartedAt string
		}
		Config struct {
			Image  string
			Labels map[string]string
		}
		Mounts          []Mount
		NetworkSettings struct {
			Networks map[string]struct{ IPAddress string }
		}
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read the engine's containers: %w", err)
	}
	list := make([]Container, 0, len(raw))
	for _, r := range raw {
		c := Container{
			ID: r.ID, Name: strings.TrimPrefix(r.Name, "/"), Image: r.Config.Image, Labels: r.Config.Labels,
			Status: r.State.Status, Running: r.State.Running, Started: started(r.State.StartedAt),
			Mounts: r.Mounts, Networks: map[string]string{},
		}
		if c.Image == "" {
			c.Image = r.ImageName
		}
		for name, n := range r.NetworkSettings.Networks {
			c.Networks[name] = n.IPAddress
		}
		list = append(list, c)
	}
	return list, nil
}

// started tells whether a start time means a start. Engines write a time far in the past for "never".
func started(at string) bool {
	t, err := time.Parse(time.RFC3339Nano, at)
	return err == nil && t.Year() > 1970
}

// Start starts stopped containers, and continues paused ones.
func (e *Engine) Start(ctx context.Context, containers ...Container) error {
	for _, c := range containers {
		verb := "start"
		if c.Status == "paused" {
			verb = "unpause"
		}
		if _, err := e.Output(ctx, verb, c.ID); err != nil {
			return fmt.Errorf("start container %s: %w", c.Name, err)
		}
	}
	return nil
}

// SetCPUShares sets the weight of a running container's processes against those of other containers when the machine is busy. container is
// a name or an ID. The default is 1,024. Podman 4 forgets the weight when the container stops. It fails if the engine cannot set weights,
// for example without root.
func (e *Engine) SetCPUShares(ctx context.Context, container string, shares int) error {
	if _, err := e.Output(ctx, "update", "--cpu-shares", strconv.Itoa(shares), container); err != nil {
		return fmt.Errorf("set the CPU shares of container %s: %w", container, err)
	}
	return nil
}

// Remove removes running and stopped containers with their anonymous volumes. It is no error if one does not exist.
func (e *Engine) Remove(ctx context.Context, containers ...Container) error {
	for _, c := range containers {
		if err := e.remove(ctx, c); err != nil {
			return fmt.Errorf("remove container %s: %w", c.Name, err)
		}
	}
	return nil
}

// removeAttempts bounds how often the removal of a container is tried. On a busy machine a node's many processes may take longer to end
// than the engine waits.
const removeAttempts = 4

func (e *Engine) remove(ctx context.Context, c Container) error {
	args := []string{"rm", "--force", "--volumes"}
	if e.name == Podman {
		args = append(args, "--time=0") // Docker kills at once; Podman would wait ten seconds for an orderly end
	}
	var err error
	for range removeAttempts {
		if _, err = e.Output(ctx, append(args, c.ID)...); err == nil || ctx.Err() != nil {
			return err
		}
		if _, gone := e.inspect(ctx, c.ID); gone != nil {
			return ctx.Err()
		}
	}
	return err
}

// RemoveVolumes removes the volumes with the label. kind's Podman provider leaves such volumes when it is killed.
func (e *Engine) RemoveVolumes(ctx context.Context, label string) error {
	out, err := e.Output(ctx, "volume", "ls", "--quiet", "--filter", "label="+label)
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	if names := strings.Fields(out); len(names) > 0 {
		if _, err := e.Output(ctx, append([]string{"volume", "rm", "--force"}, names...)...); err != nil {
			return fmt.Errorf("remove volumes: %w", err)
		}
	}
	return nil
}
