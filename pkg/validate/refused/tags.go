package refused

import (
	"fmt"
	"slices"
	"strings"
)

// The clouds that take mostTags tags of one resource.
const inAWS, inAzure, inNova = "AWS", "Azure", "Nova"

// mostTags is the number of tags that AWS, Azure and OpenStack's Nova take of one resource.
const mostTags = 50

// tagNumbers has the numbers of tags of one resource: those that users gave, and those that the provider adds.
type tagNumbers struct{ given, added int }

func (c tagNumbers) sum() int { return c.given + c.added }

// countTags counts the tags of all the mappings together, and those that the provider adds under the keys own. A user's tag with the key
// of one of those takes its place.
func countTags(own []string, tags ...part) tagNumbers {
	keys := map[string]bool{}
	for _, given := range tags {
		for key := range given.fields {
			keys[key] = true
		}
	}
	count := tagNumbers{given: len(keys)}
	for _, key := range own {
		if !hasTag(keys, key) {
			count.added++
		}
	}
	return count
}

// tagCount judges the number of tags of a resource of a cloud: those of all the mappings, of which the first one is in field, and those
// that the provider adds under the keys own.
func (p part) tagCount(cloud, field string, own []string, tags ...part) {
	first, count := len(tags[0].fields), countTags(own, tags...)
	if first == 0 || count.sum() <= mostTags {
		return
	}
	var beside []string
	if others := count.given - first; others > 0 {
		beside = append(beside, fmt.Sprintf("%d of additionalTags", others))
	}
	if count.added > 0 {
		beside = append(beside, fmt.Sprintf("%d that the provider adds", count.added))
	}
	summary := fmt.Sprintf("there are %d tags, and %s takes %d", first, cloud, mostTags)
	if len(beside) > 0 {
		summary += " with the " + strings.Join(beside, " and the ")
	}
	p.refuse(field, summary, "remove those that nobody looks for")
}

// hasTag tells whether one of the keys is that of the provider's tag own. One that ends with / or _ goes on with the name of the cluster.
func hasTag(keys map[string]bool, own string) bool {
	if !strings.HasSuffix(own, "/") && !strings.HasSuffix(own, "_") {
		return keys[own]
	}
	for key := range keys {
		if strings.HasPrefix(key, own) {
			return true
		}
	}
	return false
}

// tagsIn returns the tags in a field, which is a mapping, or a list of tags without values.
func (p part) tagsIn(field string) part {
	out := p.in(field)
	if list := p.texts(field); len(list) > 0 {
		out.fields = map[string]any{}
		for _, tag := range list {
			out.fields[tag] = ""
		}
	}
	return out
}

// inheritedTags are the tags of a cluster, which all its machines have. cluster are the keys of the tags that the provider adds to what it
// makes for the whole cluster.
type inheritedTags struct {
	cloud, from string
	cluster     []string
	tags        part
}

// judge reports more tags than the cloud takes where those of the cluster are among them. What is too much without the cluster, or with the
// cluster alone, is reported elsewhere.
func (i inheritedTags) judge(p part, field string, own []string, tags ...part) {
	if len(i.tags.fields) == 0 {
		return
	}
	alone, clusters := countTags(own, tags...), countTags(i.cluster, i.tags)
	all := countTags(own, append(slices.Clone(tags), i.tags)...)
	if all.sum() <= mostTags || alone.sum() > mostTags || clusters.sum() > mostTags {
		return
	}
	others := fmt.Sprintf("the %d of %s", all.given-alone.given, i.from)
	if all.added > 0 {
		others += fmt.Sprintf(" and the %d that the provider adds", all.added)
	}
	if alone.given == 0 {
		p.refuse("", fmt.Sprintf("its instances have more tags than the %d that %s takes: %s", mostTags, i.cloud, others),
			"remove those of the cluster that nobody looks for")
		return
	}
	p.refuse(field, fmt.Sprintf("there are %d tags, and %s takes %d with %s", alone.given, i.cloud, mostTags, others),
		"remove those that nobody looks for, here or there")
}
