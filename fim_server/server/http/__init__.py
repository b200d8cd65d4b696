"""HTTP server: the endpoints of llama.cpp and OpenAI that completion clients call, answered as an editor's requests."""
