"""DNS: the Corefile and the plugins of CoreDNS."""
