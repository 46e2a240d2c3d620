package secret

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// isSecret tells whether the value at a path of fields has to be encrypted.
func (f *file) isSecret(path []string) bool {
	if f.regex != nil {
		return slices.ContainsFunc(path, f.regex.MatchString)
	}
	suffix := f.meta.UnencryptedSuffix
	return suffix == "" || !slices.ContainsFunc(path, func(name string) bool { return strings.HasSuffix(name, suffix) })
}

// walk visits all scalars below n in order, and the comments of fields that are secret. Items of lists have their list's path.
func (f *file) walk(
	n *yaml.Node,
	path []string,
	value func(n *yaml.Node, field string, secret bool) error,
	comment func(text, field string) (string, error),
) error {
	field := strings.Join(path, ":") + ":"
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, inner := n.Content[i], n.Content[i+1]
			if name.ShortTag() == "!!merge" || inner.Kind == yaml.AliasNode {
				return diag.Errorf("write it out", "aliases (*name) cannot be encrypted")
			}
			below := append(slices.Clone(path), name.Value)
			if err := f.comments(name, path, comment); err != nil {
				return err
			}
			if err := f.comments(inner, path, comment); err != nil {
				return err
			}
			if err := f.walk(inner, below, value, comment); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := f.comments(item, path, comment); err != nil {
				return err
			}
			if err := f.walk(item, path, value, comment); err != nil {
				return err
			}
		}
		foldComments(n)
	case yaml.ScalarNode:
		return value(n, field, f.isSecret(path))
	case yaml.AliasNode:
		return diag.Errorf("write it out", "aliases (*name) cannot be encrypted")
	default:
	}
	return nil
}

// commentTag marks an item of a list that is a comment on the next one.
const commentTag = "!comment"

// foldComments puts such items where comments belong.
func foldComments(list *yaml.Node) {
	var pending []string
	kept := list.Content[:0]
	for _, item := range list.Content {
		if item.Tag == commentTag {
			pending = append(pending, "#"+item.Value)
			continue
		}
		if len(pending) > 0 {
			item.HeadComment = strings.Join(pending, "\n")
			pending = nil
		}
		kept = append(kept, item)
	}
	list.Content = kept
	if len(pending) > 0 {
		list.FootComment = strings.Join(pending, "\n")
	}
}

// comments changes the comments of a node whose surroundings are secret.
func (f *file) comments(n *yaml.Node, path []string, change func(text, field string) (string, error)) error {
	if !f.isSecret(path) {
		return nil
	}
	field := strings.Join(path, ":") + ":"
	for _, c := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if *c == "" {
			continue
		}
		lines := strings.Split(*c, "\n")
		for i, line := range lines {
			text, ok := strings.CutPrefix(line, "#")
			if !ok || text == "" {
				continue
			}
			changed, err := change(text, field)
			if err != nil {
				return fmt.Errorf("a comment of %s: %w", strings.TrimSuffix(field, ":"), err)
			}
			lines[i] = "#" + changed
		}
		*c = strings.Join(lines, "\n")
	}
	return nil
}
