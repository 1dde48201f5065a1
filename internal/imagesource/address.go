package imagesource

import (
	"net/netip"
	"slices"
)

// isPrivate tells whether an address is one that only the daemon's own network
// reaches, or none that a host can have (spec 40 §9.1).
func isPrivate(address netip.Addr) bool {
	address = unwrap(address.WithZone("").Unmap())
	return address.IsUnspecified() || address.IsLoopback() || address.IsPrivate() ||
		address.IsLinkLocalUnicast() || address.IsMulticast() ||
		slices.ContainsFunc(reserved, func(network netip.Prefix) bool { return network.Contains(address) })
}

// reserved are the networks that net/netip has no word for.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network; 0.0.0.0 is this machine
	netip.MustParsePrefix("100.64.0.0/10"),  // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),   // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, with broadcast
	netip.MustParsePrefix("::/96"),          // IPv4-compatible, long gone
	netip.MustParsePrefix("fec0::/10"),      // site-local, long gone
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 inside a network (RFC 8215)
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToIV = netip.MustParsePrefix("2002::/16")
)

// unwrap returns the IPv4 address that a NAT64 or 6to4 address leads to, else the
// address itself.
func unwrap(address netip.Addr) netip.Addr {
	bytes := address.As16()
	switch {
	case nat64.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case sixToIV.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	default:
		return address
	}
}
