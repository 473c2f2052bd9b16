//! With the feature `torch`: the binary finds libtorch by a run path, no exported variable.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Ok(dir) = std::env::var("DEP_HEADWAY_TORCH_LIB") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    if Path::new(&dir).join("libtorch_cuda.so").exists() {
        // Nothing names a symbol of it: it registers itself when it is loaded.
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo::rustc-link-arg=-L{dir}");
        println!("cargo::rustc-link-arg=-ltorch_cuda");
        println!("cargo::rustc-link-arg=-Wl,--as-needed");
    }
}
