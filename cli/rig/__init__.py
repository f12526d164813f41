"""A forge on the loopback interface: real git repositories behind a stand-in API."""
