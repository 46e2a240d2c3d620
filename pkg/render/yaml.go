package render

import "github.com/fleetctl/fleetctl/pkg/render/internal/codec"

// AppendYAML appends a JSON value to dst as YAML in block style, with the fields in their order. src has to be valid JSON.
func AppendYAML(dst, src []byte) []byte { return codec.AppendYAML(dst, src) }
