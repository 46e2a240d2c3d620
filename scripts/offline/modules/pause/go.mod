module github.com/fleetctl/fleetctl/scripts/offline/modules/pause

go 1.26.0
