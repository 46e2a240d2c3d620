// Package mapping reads fields of an object whose shape nobody has checked. A field that is missing, or has another type, reads as empty.
package mapping

// Fields are the fields of an object, or of a mapping in an object.
type Fields map[string]any

// Text is the text at a path; "" where there is none.
func (f Fields) Text(path ...string) string {
	value := any(map[string]any(f))
	for _, p := range path {
		inner, _ := value.(map[string]any)
		value = inner[p]
	}
	text, _ := value.(string)
	return text
}

// In is the mapping at a path; nil where there is none.
func (f Fields) In(path ...string) Fields {
	value := any(map[string]any(f))
	for _, p := range path {
		inner, _ := value.(map[string]any)
		value = inner[p]
	}
	inner, _ := value.(map[string]any)
	return inner
}

// List are the items of the list at a path. An item that is no mapping is nil.
func (f Fields) List(path ...string) []Fields {
	items, _ := f.In(path[:len(path)-1]...)[path[len(path)-1]].([]any)
	out := make([]Fields, len(items))
	for i, item := range items {
		out[i], _ = item.(map[string]any)
	}
	return out
}
