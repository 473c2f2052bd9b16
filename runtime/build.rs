//! With the feature `torch`: tells the linker where libtorch is, so that tests and binaries find it
//! when they run (a run path, no exported variable). Without libtorch it says what to run.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    println!("cargo::rerun-if-env-changed=LIBTORCH_LIB");
    println!("cargo::rerun-if-env-changed=LIBTORCH_USE_PYTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let dir = library_dir();
    println!("cargo::rerun-if-changed={}", dir.join("libtorch_cpu.so").display());
    let Some(dir) = dir.canonicalize().ok().filter(|dir| dir.join("libtorch_cpu.so").exists())
    else {
        println!("cargo::error=there is no libtorch in {}: run scripts/libtorch.sh", dir.display());
        return;
    };
    println!("cargo::metadata=lib={}", dir.display());
    link(&dir);
}

/// Where torch-sys looks for the library, by the same variables.
fn library_dir() -> PathBuf {
    if std::env::var_os("LIBTORCH_USE_PYTORCH").is_some() {
        let code = "import os, torch; print(os.path.join(os.path.dirname(torch.__file__), 'lib'))";
        let output = Command::new("python3").args(["-c", code]).output();
        let printed = output.map(|output| output.stdout).unwrap_or_default();
        return PathBuf::from(String::from_utf8_lossy(&printed).trim());
    }
    let root = std::env::var_os("LIBTORCH_LIB").or_else(|| std::env::var_os("LIBTORCH"));
    PathBuf::from(root.unwrap_or_else(|| "/usr".into())).join("lib")
}

fn link(dir: &Path) {
    let dir = dir.display();
    println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    if Path::new(&format!("{dir}/libtorch_cuda.so")).exists() {
        // Nothing names a symbol of it: it registers itself when it is loaded.
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo::rustc-link-arg=-L{dir}");
        println!("cargo::rustc-link-arg=-ltorch_cuda");
        println!("cargo::rustc-link-arg=-Wl,--as-needed");
    }
}
