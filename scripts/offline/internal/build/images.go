package build

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/image"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// unprivileged is the user of release images.
const unprivileged = "65532"

// programImages makes the images and puts each into all the given sets.
func (b *builder) programImages(ctx context.Context, images []recipe.Image, sets ...map[string]v1.Image) error {
	for _, i := range images {
		img, err := b.programImage(ctx, i, nil)
		if err != nil {
			return err
		}
		for _, set := range sets {
			set[i.Ref] = img
		}
	}
	return nil
}

// programImage makes an image of a program and what else it needs, content by path.
func (b *builder) programImage(ctx context.Context, i recipe.Image, more map[string][]byte) (v1.Image, error) {
	program := b.programs[i.Program]
	key := cache.NewKey("program-image/1").
		Add("image", i.Ref, program, i.Path, fmt.Sprint(i.Root, i.Entrypoint)).
		Add("links", i.Links...)
	for _, name := range slices.Sorted(maps.Keys(more)) {
		key.Add("file", name, string(more[name]))
	}
	dir, err := b.cache.Make(ctx, "image-"+i.Name(), key, func(_ context.Context, dir string) error {
		files, err := image.Base()
		if err != nil {
			return err
		}
		files = append(files, image.File{Path: i.Path, Source: program})
		for _, link := range i.Links {
			files = append(files, image.File{Path: link, Link: i.Path})
		}
		for name, content := range more {
			files = append(files, image.File{Path: name, Content: content})
		}
		return image.Write(dir, files, configOf(i))
	})
	if err != nil {
		return nil, err
	}
	return image.Read(dir)
}

func configOf(i recipe.Image) image.Config {
	config := image.Config{User: unprivileged}
	if i.Root {
		config.User = "0"
	}
	if i.Entrypoint {
		config.Entrypoint = []string{i.Path}
	}
	return config
}
