package kube

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

const (
	// maxLogLines bounds the lines that PodLog reads.
	maxLogLines = 5000
	// maxLogRead bounds the bytes that PodLog reads. It is large, because the API server's limit cuts off the newest lines, not the oldest.
	maxLogRead = 32 << 20
)

// PodLog returns the end of a container's log, at most limit bytes. If before is true, it returns the log of the container before its last
// restart.
func (c *Client) PodLog(ctx context.Context, pod Key, container string, before bool, limit int64) ([]byte, error) {
	raw, err := c.discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", pod.Namespace, "pods", pod.Name, "log").
		Param("container", container).Param("previous", strconv.FormatBool(before)).Param("timestamps", "true").
		Param("tailLines", strconv.Itoa(maxLogLines)).Param("limitBytes", strconv.Itoa(maxLogRead)).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the log of %s of pod %s: %w", container, pod, err)
	}
	return endOfLog(raw, limit), nil
}

// endOfLog returns the last whole lines of a log, at most limit bytes. It leaves out incomplete lines, because a secret in such a line
// might not be recognised.
func endOfLog(raw []byte, limit int64) []byte {
	if len(raw) >= maxLogRead {
		raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	}
	if over := int64(len(raw)) - limit; over > 0 {
		_, raw, _ = bytes.Cut(raw[over:], []byte("\n"))
	}
	return raw
}
