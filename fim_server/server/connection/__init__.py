"""Connections to editors: transports, messages and the handshake."""
