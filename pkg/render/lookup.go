package render

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// learn remembers what other objects refer to.
func (w *walk) learn(all []*content, targets []string) {
	for _, c := range all {
		name := lookupKey(targets, c.Metadata.Namespace, c.Metadata.Name)
		switch {
		case c.Kind == "ConfigMap" && c.APIVersion == "v1":
			var o struct {
				Data map[string]string `json:"data"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.configMaps[name] = o.Data
			}
		case isFlux(c, "GitRepository"):
			var o struct {
				Spec struct {
					URL string `json:"url"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.sources[name] = o.Spec.URL
			}
		}
	}
}

func lookupKey(targets []string, namespace, name string) string {
	first := "" // what several targets have in common is the same on each
	if len(targets) > 0 {
		first = targets[0]
	}
	return first + "\x00" + namespace + "\x00" + name
}

func (w *walk) configMap(targets []string, namespace, name string) (map[string]string, bool) {
	data, ok := w.configMaps[lookupKey(targets, namespace, name)]
	return data, ok
}

// foreign says why a source is not the files at hand; "" where it is.
func (w *walk) foreign(targets []string, kind, namespace, name string) string {
	if kind != "GitRepository" {
		return fmt.Sprintf("it comes from the %s %s", kind, name)
	}
	url, ok := w.sources[lookupKey(targets, namespace, name)]
	own := cmp.Or(w.sources[lookupKey(nil, fluxSystem, fluxSystem)], w.r.fleet.Spec.Git.URL)
	if !ok || own == "" || url == own || url == w.r.fleet.Spec.Git.URL {
		return ""
	}
	return fmt.Sprintf("it comes from another repository, that of the GitRepository %s", name)
}
