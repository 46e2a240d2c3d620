package render

import "github.com/fleetctl/fleetctl/pkg/render/internal/codec"

// Metadata returns the object's metadata in its JSON, with the text before and after it. It returns nil if there is none.
func (o *Object) Metadata() (before, metadata, behind []byte) {
	at, _, ok := codec.SpotOf(o.JSON, 0, "metadata")
	if !ok || at == 0 {
		return nil, nil, nil
	}
	end := codec.SkipJSON(o.JSON, at)
	if end < 0 {
		return nil, nil, nil
	}
	return o.JSON[:at], o.JSON[at:end], o.JSON[end:]
}

// withNamespace returns the content in a namespace. It returns content without metadata unchanged.
func (c *content) withNamespace(namespace string) (*content, error) {
	metadata, _, ok := codec.SpotOf(c.json, 0, "metadata")
	if ok && metadata > 0 {
		value, place, ok := codec.SpotOf(c.json, metadata, "namespace")
		if ok && value == 0 && place > metadata+1 { // after the name
			field := append([]byte(`"namespace":`), codec.Text(namespace)...)
			if c.json[place] == '}' {
				field = append([]byte{','}, field...)
			} else {
				field = append(field, ',')
			}
			changed := *c
			changed.json = append(append(append(make([]byte, 0, len(c.json)+len(field)), c.json[:place]...), field...), c.json[place:]...)
			changed.Metadata.Namespace = namespace
			return &changed, nil
		}
	}
	return c.with(func(fields map[string]any) {
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			metadata["namespace"] = namespace
		}
	})
}
