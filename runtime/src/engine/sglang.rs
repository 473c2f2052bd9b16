//! SGLang as a serving engine, over HTTP.
//!
//! Turns go to `/generate` as token ids, with `return_logprob` and as a stream: what is trained on
//! are the ids and log-probabilities that the server sent, and every piece of the stream carries the
//! label of the weights that made it. A token with a label that is none of Headway's, or with none,
//! fails its turn. Weights are directories that the server reads itself.
//!
//! `docs/engines.md` says which calls are made and what is exact.

mod chunk;
mod server;

pub(super) use server::Server;
