package fleetrepo

import (
	"path"
)

// Called returns what gives each of all clusters the name that commands take: NAME or, if several have that name, ENVIRONMENT/NAME. A
// cluster of manifests is NAMESPACE/NAME then.
func Called(all []Cluster) func(c Cluster) string {
	times := map[string]int{}
	for _, c := range all {
		times[c.Name]++
	}
	return func(c Cluster) string {
		switch {
		case times[c.Name] < 2:
			return c.Name
		case c.Manifests:
			return c.Namespace + "/" + c.Name
		}
		return c.Environment + "/" + c.Name
	}
}

// Choices returns the names of all clusters to choose from, as commands take them: NAME or, if several have that name, ENVIRONMENT/NAME. It
// opens no file.
func (r *Repo) Choices() []string {
	places, err := r.places("")
	if err != nil {
		return nil
	}
	called := calledAmong(places)
	names := make([]string, 0, len(places))
	for _, p := range places {
		names = append(names, called(p))
	}
	return sortedSet(names)
}

// calledAmong returns what gives the clusters of all places the names that commands take.
func calledAmong(all []place) func(p place) string {
	times := map[string]int{}
	for _, p := range all {
		times[p.name()]++
	}
	return func(p place) string {
		if times[p.name()] < 2 {
			return p.name()
		}
		return p.environment + "/" + p.name()
	}
}

// called returns the name that commands take for a cluster.
func (r *Repo) called(environment, name string) string {
	if places, err := r.places(name); err == nil && len(places) < 2 {
		return name
	}
	return environment + "/" + name
}

// name is the name of the cluster, which is that of its folder.
func (p place) name() string { return path.Base(path.Dir(p.file)) }
