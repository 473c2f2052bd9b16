//! vLLM as a serving engine, over HTTP.
//!
//! Turns go to `/inference/v1/generate`, tokens in and tokens out, as a stream: what is trained on are
//! the ids and log-probabilities that the server sent. vLLM says at the end of a turn which label each
//! of its tokens was made under; labels change while it is paused, and nowhere else. So a token's
//! version is known when it comes as long as no load has begun since its turn did. Once one has, the
//! rest of the turn is kept back until its end, and is stamped by what the server says then. What was
//! stamped before is compared with it, too: a turn whose stamps the server does not confirm fails.
//!
//! `docs/engines.md` says which calls are made and what is exact.

mod chunk;
mod server;

pub(super) use server::Server;
