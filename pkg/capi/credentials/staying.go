package credentials

import "slices"

// whyStays are the reasons why the credentials of an infrastructure provider stay on a management cluster in its cloud.
var whyStays = map[string]string{
	"gcp":     "it does not start without the file of a key",
	"vsphere": "machines of vSphere have no identity that could replace them",
}

// WhyStays says why the credentials of an infrastructure provider stay on a management cluster, also on machines of its cloud.
func WhyStays(provider string) string {
	if why := whyStays[provider]; why != "" {
		return why
	}
	return "nothing is known here that could replace them"
}

// Held returns the variables of the provider with the label that have a recorded value in a Secret. It leaves out those that skip names.
func (r *Record) Held(label string, skip func(variable string) bool) []string {
	var names []string
	if p := r.Providers[label]; p != nil {
		for name, v := range p.Variables {
			if v.Secret && !skip(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
