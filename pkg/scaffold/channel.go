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
	// Branch or present Tag of the channel.
	Branch, Tag string
	// Layout of the management cluster.
	Layout layout.Layout
	// Sync is the content of the management cluster's gotk-sync.yaml. The channel's source gets the URL and credentials of its
	// GitRepository flux-system.
	Sync []byte
}

// ChannelFile returns the file with the GitRepository of a channel. Errors: a bad name, or a Sync without the GitRepository flux-system.
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

// FollowSync returns source, the file of a channel's GitRepository, with the URL and credentials of the fleet repo in sync. It keeps all
// other content, above all the tag, because the file belongs to the user. Errors: those of ChannelFile and of yamledit.
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

// systemSource returns the spec of the GitRepository flux-system in a gotk-sync.yaml.
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
