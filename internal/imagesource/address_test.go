package imagesource_test

import (
	"net/netip"
	"testing"

	"hostr-daemon/internal/imagesource"
)

func TestIsPrivate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.255.255.254": true, "::1": true, // loopback
		"169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true, // link-local
		"10.0.0.1": true, "172.16.0.1": true, "172.31.255.255": true, "192.168.1.1": true, "fc00::1": true, "fd12::1": true, "fd12::1%1": true,
		"100.64.0.1": true, "100.127.255.255": true, // carrier-grade NAT
		"0.0.0.0": true, "0.1.2.3": true, "::": true, // unspecified
		"224.0.0.1": true, "239.1.2.3": true, "ff02::1": true, "ff0e::1": true, // multicast
		"255.255.255.255": true, "240.0.0.1": true, // broadcast, reserved
		"192.0.0.1": true, "198.18.0.1": true, "198.19.255.255": true,
		"::ffff:10.0.0.1": true, "::ffff:169.254.169.254": true, "::ffff:127.0.0.1": true, // mapped
		"64:ff9b::10.0.0.1": true, "64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b:1::808:808": true, // NAT64
		"2002:a00:1::": true, "2002:7f00:1::1": true, // 6to4
		"::127.0.0.1": true, "::808:808": true, "fec0::1": true,

		"8.8.8.8": false, "93.184.216.34": false, "172.15.255.255": false, "172.32.0.1": false, "100.63.255.255": false, "100.128.0.1": false,
		"192.0.1.1": false, "198.17.255.255": false, "198.20.0.1": false, "223.255.255.255": false, "1.0.0.0": false,
		"2606:4700::1111": false, "::ffff:8.8.8.8": false, "64:ff9b::8.8.8.8": false, "64:ff9c::a00:1": false, "2002:808:808::1": false,
	} {
		if got := imagesource.IsPrivate(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
