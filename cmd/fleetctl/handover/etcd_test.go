//go:build e2e

package handover

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// etcd is the store below an API server, over its JSON gateway. What a side holds is put back there, object for object with UIDs and
// all, which no API server would do, and in milliseconds. An API server takes it for the writes of another one beside it.
type etcd struct {
	url *url.URL
}

// saved are all keys and values that restore puts back, as base64.
type saved map[string]string

// transient are keys that an API server looks after itself.
var transient = []string{
	"/registry/masterleases/", "/registry/peerserverleases/", "/registry/leases/", "/registry/events/",
	"/registry/services/endpoints/default/",
	"/registry/endpointslices/default/", "/registry/apiregistration.k8s.io/", "/registry/ranges/",
	"/registry/flowschemas/", "/registry/prioritylevelconfigurations/", "/registry/storageversion",
}

type rangeAnswer struct {
	Pairs []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"kvs"`
}

type operation map[string]any

func text64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// spans are where the keys of a fleet are: between an API server's own definitions, of megabytes, which nobody changes here.
var spans = [][2]string{
	{"/registry/", "/registry/apiextensions.k8s.io/"}, {"/registry/apiextensions.k8s.io0", "/registry0"},
}

// read reads all keys but the transient ones.
func (e *etcd) read(ctx context.Context) (saved, error) {
	pairs := saved{}
	for _, span := range spans {
		var answer rangeAnswer
		request := operation{"key": text64(span[0]), "range_end": text64(span[1])}
		if err := e.call(ctx, "/v3/kv/range", request, &answer); err != nil {
			return nil, err
		}
		for _, pair := range answer.Pairs {
			key, err := base64.StdEncoding.DecodeString(pair.Key)
			if err != nil {
				return nil, err
			}
			if !isTransient(string(key)) {
				pairs[pair.Key] = pair.Value
			}
		}
	}
	return pairs, nil
}

func isTransient(key string) bool {
	for _, prefix := range transient {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// save returns the present content of etcd.
func (e *etcd) save(ctx context.Context) (saved, error) { return e.read(ctx) }

// restore brings etcd back to the saved content, and returns the keys that it has removed or changed.
func (e *etcd) restore(ctx context.Context, saved saved) ([]string, error) {
	there, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	var operations []operation
	var touched []string
	touch := func(key string, o operation) {
		path, _ := base64.StdEncoding.DecodeString(key)
		touched = append(touched, string(path))
		operations = append(operations, o)
	}
	for key := range there {
		if _, known := saved[key]; !known {
			touch(key, operation{"request_delete_range": operation{"key": key}})
		}
	}
	for key, value := range saved {
		if now, exists := there[key]; !exists || now != value {
			touch(key, operation{"request_put": operation{"key": key, "value": value}})
		}
	}
	const most = 100 // of the 128 that etcd takes at once
	for len(operations) > 0 {
		n := min(most, len(operations))
		if err := e.call(ctx, "/v3/kv/txn", operation{"success": operations[:n]}, &struct{}{}); err != nil {
			return nil, err
		}
		operations = operations[n:]
	}
	return touched, nil
}

// fill raises or clears etcd's alarm for a lack of space. While the alarm is raised, etcd refuses every write that needs space.
func (e *etcd) fill(ctx context.Context, full bool) error {
	action := "DEACTIVATE"
	if full {
		action = "ACTIVATE"
	}
	return e.call(ctx, "/v3/maintenance/alarm", operation{"action": action, "alarm": "NOSPACE"}, &struct{}{})
}

func (e *etcd) call(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %.300s", path, response.Status, content)
	}
	return json.Unmarshal(content, answer)
}
