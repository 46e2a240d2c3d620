package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// podContainers are the fields of a pod's specification that list containers. They are searched at any depth, because kinds that make pods
// (Deployment, CronJob, List, a custom resource) nest the specification in different ways.
var podContainers = map[string]bool{"containers": true, "initContainers": true, "ephemeralContainers": true}

// ImagesIn returns the container images in the documents of a YAML manifest, as full references (see FullReference), each once, in the
// order in which they appear. The error has the line, and is about invalid YAML, or about each image that is not a reference, such as a
// variable that was not replaced.
func ImagesIn(manifest []byte) ([]string, error) {
	s := imageScan{images: []string{}, seen: map[string]bool{}, visited: map[*yaml.Node]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(manifest))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return s.images, errors.Join(s.problems...)
		}
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		s.visit(&doc)
	}
}

// imageScan walks YAML nodes. It follows aliases, but visits no node twice, so that aliases of aliases do not multiply the work.
type imageScan struct {
	images   []string
	seen     map[string]bool
	visited  map[*yaml.Node]bool
	problems []error
}

func (s *imageScan) visit(n *yaml.Node) {
	n = resolve(n)
	if s.visited[n] {
		return
	}
	s.visited[n] = true
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			s.visit(child)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if podContainers[key.Value] && value.Kind == yaml.SequenceNode {
			for _, container := range value.Content {
				s.container(resolve(container))
			}
		}
		s.visit(value)
	}
}

func (s *imageScan) container(n *yaml.Node) {
	value := fieldOf(n, "image", map[*yaml.Node]bool{})
	if value == nil || value.Kind != yaml.ScalarNode || value.Value == "" || value.ShortTag() == "!!null" {
		return
	}
	full, err := FullReference(value.Value)
	if value.ShortTag() != "!!str" {
		err = fmt.Errorf("%q is not an image reference, because it is not text", value.Value)
	}
	if err != nil {
		s.problems = append(s.problems, fmt.Errorf("line %d: %w", value.Line, err))
		return
	}
	if !s.seen[full] {
		s.seen[full] = true
		s.images = append(s.images, full)
	}
}

// fieldOf returns the value of a mapping's field: the mapping's own field, or else the field of the first merged mapping (<<) that has it,
// or else nil. seen has the mappings visited so far, because merges may form cycles.
func fieldOf(n *yaml.Node, name string, seen map[*yaml.Node]bool) *yaml.Node {
	if n.Kind != yaml.MappingNode || seen[n] {
		return nil
	}
	seen[n] = true
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch {
		case key.Value == name:
			return value
		case key.ShortTag() == "!!merge" && value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		}
	}
	for _, from := range merged {
		if value := fieldOf(resolve(from), name, seen); value != nil {
			return value
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
