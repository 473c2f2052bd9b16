//! world

pub mod replica;
