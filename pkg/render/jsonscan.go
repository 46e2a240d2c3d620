package render

import "bytes"

// skipJSON is the index behind the value that src has at an index; -1 where it is cut short. src is valid JSON without spaces between its parts,
// as encoding/json writes it.
func skipJSON(src []byte, at int) int {
	depth := 0
	for at < len(src) {
		switch src[at] {
		case '"':
			for at++; at < len(src) && src[at] != '"'; at++ {
				if src[at] == '\\' {
					at++
				}
			}
			at++
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
			at++
		case ',', ':':
			if depth == 0 {
				return at
			}
			at++
		default:
			at++
		}
		if depth == 0 && at < len(src) && (src[at] == ',' || src[at] == '}' || src[at] == ']' || src[at] == ':') {
			return at
		}
	}
	if depth > 0 || at > len(src) {
		return -1
	}
	return at
}

// spotOf finds a field in the fields that begin at an index: where its value begins, or where the field has to be put in for the names to stay
// in order. ok is false where there are no fields at the index.
func spotOf(src []byte, at int, name string) (value, place int, ok bool) {
	if at >= len(src) || src[at] != '{' {
		return 0, 0, false
	}
	for at++; at < len(src) && src[at] == '"'; at++ {
		colon := skipJSON(src, at)
		if colon < 0 || colon >= len(src) || src[colon] != ':' {
			return 0, 0, false
		}
		there := src[at+1 : colon-1]
		if bytes.IndexByte(there, '\\') >= 0 {
			return 0, 0, false
		}
		switch bytes.Compare(there, []byte(name)) {
		case 0:
			return colon + 1, 0, true
		case 1:
			return 0, at, true
		}
		if at = skipJSON(src, colon+1); at < 0 || at >= len(src) {
			return 0, 0, false
		}
		if src[at] == '}' {
			return 0, at, true
		}
	}
	return 0, at, true
}

// Metadata is the object's metadata in its JSON, with what stands before and behind it; nil where it has none.
func (o *Object) Metadata() (before, metadata, behind []byte) {
	at, _, ok := spotOf(o.JSON, 0, "metadata")
	if !ok || at == 0 {
		return nil, nil, nil
	}
	end := skipJSON(o.JSON, at)
	if end < 0 {
		return nil, nil, nil
	}
	return o.JSON[:at], o.JSON[at:end], o.JSON[end:]
}

// withNamespace returns the content in a namespace; one without metadata is returned as it is.
func (c *content) withNamespace(namespace string) (*content, error) {
	metadata, _, ok := spotOf(c.json, 0, "metadata")
	if ok && metadata > 0 {
		value, place, ok := spotOf(c.json, metadata, "namespace")
		if ok && value == 0 && place > metadata+1 { // behind the name
			field := append([]byte(`"namespace":`), jsonText(namespace)...)
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
