package kube

import (
	"context"
	"fmt"
	"strconv"
)

// maxLogLines bounds PodLog besides its bytes.
const maxLogLines = 5000

// PodLog is the end of a container's log, in so many bytes at most; before: of the container that ran there before its last restart.
func (c *Client) PodLog(ctx context.Context, pod Key, container string, before bool, limit int64) ([]byte, error) {
	raw, err := c.discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", pod.Namespace, "pods", pod.Name, "log").
		Param("container", container).Param("previous", strconv.FormatBool(before)).Param("timestamps", "true").
		Param("tailLines", strconv.Itoa(maxLogLines)).Param("limitBytes", strconv.FormatInt(limit, 10)).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the log of %s of pod %s: %w", container, pod, err)
	}
	return raw, nil
}
