package scaffold

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// ChannelOptions declare the source of a channel on a management cluster.
type ChannelOptions struct {
	// Name of the channel and of its GitRepository.
	Name string
	// Branch or Tag that it is at.
	Branch, Tag string
	// Layout of the management cluster.
	Layout layout.Layout
	// Sync is the content of its gotk-sync.yaml: the channel's source reaches the fleet repo as the GitRepository flux-system in it does.
	Sync []byte
}

// ChannelFile makes the GitRepository of a channel. Errors: a bad name, or a Sync without the GitRepository flux-system.
func ChannelFile(opts ChannelOptions) (manifest.File, error) {
	if err := CheckName("channel", opts.Name, 63); err != nil {
		return manifest.File{}, err
	}
	spec, err := systemSource(opts.Sync)
	if err != nil {
		return manifest.File{}, fmt.Errorf("generate channel %s: %w", opts.Name, err)
	}
	delete(spec, "ref")
	text, err := yamlBelow(spec, 2)
	if err != nil {
		return manifest.File{}, fmt.Errorf("generate channel %s: %w", opts.Name, err)
	}
	content, err := execute("gitrepository.yaml", struct{ Channel, Branch, Tag, Spec string }{opts.Name, opts.Branch, opts.Tag, text})
	return manifest.File{Path: opts.Layout.SourceFile(opts.Name), Content: content}, err
}

// FollowSync returns the source of a channel, as it stands in the repo, with the address of the fleet repo that sync has. All else in it
// is the user's, the tag above all. Errors are those of ChannelFile and of yamledit.
func FollowSync(source, sync []byte) ([]byte, error) {
	spec, err := systemSource(sync)
	if err != nil {
		return nil, err
	}
	if source, err = yamledit.Set(source, 0, yamledit.Path{"spec", "url"}, spec["url"]); err != nil {
		return nil, err
	}
	secret, _ := spec["secretRef"].(map[string]any)
	if secret == nil {
		return yamledit.Remove(source, 0, yamledit.Path{"spec", "secretRef"})
	}
	return yamledit.Set(source, 0, yamledit.Path{"spec", "secretRef", "name"}, secret["name"])
}

// systemSource is the spec of the GitRepository flux-system in a gotk-sync.yaml.
func systemSource(sync []byte) (map[string]any, error) {
	documents, err := yamledit.Parse(sync)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     map[string]any
		}
		if d.Kind != yaml.MappingNode || d.Decode(&object) != nil {
			continue
		}
		if object.Kind == "GitRepository" && object.Metadata.Name == mainSource && object.Spec["url"] != nil {
			return object.Spec, nil
		}
	}
	return nil, fmt.Errorf("there is no GitRepository %s in gotk-sync.yaml", mainSource)
}
